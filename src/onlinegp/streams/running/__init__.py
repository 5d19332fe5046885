"""Run a model over a stream: tune, predict, learn, score, and write checkpoints."""
