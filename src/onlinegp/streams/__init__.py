"""Streams: from a file or a pipe to predictions with intervals, and nothing lost on the way.

`source` opens what rows come from, `advance` lets a model predict and learn them, `sinks` write what was predicted,
`score` judges it, `checkpoint` makes it all safe, and `job` is the loop around them.
"""
