"""Rows are worked on in pieces, between which a run looks at signals."""

from __future__ import annotations

from onlinegp.streams.running.run import FIRST_PIECE, PIECE, Job


def test_pieces_follow_the_time_that_they_take_but_stay_long_enough_to_pay_for_one():
    job = Job.__new__(Job)
    job._piece, job.tuning_due = FIRST_PIECE, False
    for _ in range(3):
        job._adapt(job._piece, 0.1 * PIECE)
    assert job._piece == 8 * FIRST_PIECE
    for _ in range(10):
        job._adapt(job._piece, 2.0 * PIECE)  # a busy machine, where fewer rows take as long
    assert job._piece == FIRST_PIECE
    job._adapt(3, 2.0 * PIECE)  # what a pipe had
    assert job._piece == FIRST_PIECE
