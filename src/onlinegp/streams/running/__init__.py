"""What happens to rows: tuning, predicting, learning, scoring, checkpoints."""
