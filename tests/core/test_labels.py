"""Labels of public keys: a sequence of texts, small in memory and in pickles."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.labels import Labels
from transforms.key_labels import label_of


@given(
    st.lists(
        st.text('ab"\\\n\0é\u2028😀', max_size=8).map(lambda text: label_of([text])), unique=True, max_size=20
    )
)
def test_labels_are_the_texts_that_were_given(texts):
    labels = Labels(texts)
    assert list(labels) == texts == [labels[place] for place in range(len(labels))] == labels[:]
    assert labels.array.tolist() == [text.encode("utf-8", "surrogatepass") for text in texts]
    assert bool(labels) == bool(texts) and labels[3:7] == texts[3:7]


def test_half_of_a_character_is_a_label_too():
    """JSON may have it, and so may a job."""
    texts = ['["\ud83d"]', '["a"]']
    labels = Labels(texts)
    assert list(labels) == texts and list(pickle.loads(pickle.dumps(labels))) == texts


def test_more_labels_than_are_objects_at_one_time_are_all_there():
    texts = [f'["{i}"]' for i in range(40_000)]
    assert list(Labels(texts)) == texts


def test_equal_labels_are_equal_in_any_order_of_making():
    one, same, other = Labels(['["a"]', '["b"]']), Labels(['["a"]', '["b"]']), Labels(['["b"]', '["a"]'])
    assert one == same and hash(one) == hash(same) and one != other and one != ('["a"]', '["b"]')
    assert repr(one) == repr(same) != repr(other)  # of which an attempt at a table is a hash


def test_labels_that_stay_are_pickled_by_their_hash():
    labels = Labels(f'["{i}"]' for i in range(10_000))
    whole = pickle.dumps(labels)
    with labels.staying(), labels.staying():
        small = pickle.dumps(labels)
    assert len(small) < 200 < len(whole) and pickle.dumps(labels) == whole
    assert pickle.loads(small) is pickle.loads(whole) is labels


def test_labels_of_a_run_that_failed_no_longer_stay():
    labels = Labels(['["failed"]'])
    whole = pickle.dumps(labels)
    with pytest.raises(ValueError, match="no run"), labels.staying():
        raise ValueError("no run")
    assert pickle.dumps(labels) == whole


def test_labels_of_a_run_are_found_though_an_equal_run_ended():
    first, second, third = (Labels(['["twice"]']) for _ in range(3))
    with second.staying():
        with third.staying():
            small = pickle.dumps(third)
        del first, third
        assert pickle.loads(small) is second
        assert pickle.loads(pickle.dumps(second)) is second


def test_another_process_reads_whole_labels_alone():
    """It must not take others for those that stayed."""
    labels = Labels(['["a"]'])
    whole = pickle.dumps(labels)
    with labels.staying():
        small = pickle.dumps(labels)
    code = f"import pickle; print(list(pickle.loads({whole!r})))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['[\"a\"]']"
    code = f"import pickle; pickle.loads({small!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode and "are in another process" in found.stderr


def test_labels_that_nobody_holds_are_not_kept():
    labels = Labels(['["gone"]'])
    with labels.staying():
        small = pickle.dumps(labels)
    del labels
    with pytest.raises(LookupError, match="in another process"):
        pickle.loads(small)
