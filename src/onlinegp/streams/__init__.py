"""Streams: read rows from a file or a pipe, predict and learn them, write predictions, and resume after a crash.

`reading` opens files and pipes, `running` contains the loop over the rows with scores and checkpoints, and `writing`
writes predictions and reports.
"""
