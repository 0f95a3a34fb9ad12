"""The judge of claims sees each fault it is for, and none in a sound history."""
from harness.claims import Claim, End, claim_faults

A, B = Claim("a", "t", "1", 0.0, 0.1), Claim("b", "t", "2", 1.2, 1.3)


def test_a_task_that_comes_back_after_its_lease_is_no_fault():
    """Nor one that was given back before."""
    assert not claim_faults([A, B], [End("t", "2", 1.4, "success", True)], 1.0)
    early = B._replace(before=0.2, after=0.3)
    assert not claim_faults([A, early], [End("t", "1", 0.15, "release", True)], 1.0)
    assert not claim_faults([A, early], [End("t", "1", 0.15, "failure", None)], 1.0)
    assert not claim_faults([A, early._replace(task="u")], [], 1.0)


def test_one_token_for_two_workers_is_a_fault():
    """Whenever it was."""
    assert claim_faults([A, B._replace(token="1")], [], 1.0)


def test_a_task_given_away_under_a_running_lease_is_a_fault():
    """Unless the first had said something."""
    assert claim_faults([A, B._replace(before=0.2, after=0.3)], [], 1.0)


def test_two_accepted_successes_are_a_fault():
    """A second one that was refused or cut off is none."""
    ends = [End("t", "1", 0.5, "success", True), End("t", "2", 1.5, "success", True)]
    assert claim_faults([A, B], ends, 1.0)
    assert not claim_faults([A, B], [ends[0], ends[1]._replace(accepted=False)], 1.0)
