"""Streams: read rows from a file or a pipe, predict and learn them, write the predictions, and survive a crash.

`reading` opens files and pipes, `running` holds the loop over the rows with its scores and checkpoints, and `writing`
writes predictions and reports.
"""
