"""Numbers that record: where what was written down holds, the function gives what the code itself would."""

import gc
import itertools
import math
import operator
import weakref

import numpy as np
import pytest

from catena.compiler.graph import keys, replayed, symbols, thresholds, varying
from catena.compiler.graph.symbols import Symbol
from catena.compiler.plan.memory import Arena

VALUES = [0, 1, 3, 8, 17, 64, 100, 1000]


def blocks(n, m):
    each = min(-(-n // 4), max(m, 3))
    return [n * m + 7, each, n % 5 if n > m else m // 2, (n - 1).bit_length() << 3, math.ceil(n / 3)]


def by_cases(n, m):
    if n % 8 and not n > 50:
        return [abs(m - n)]
    return [n & 12, divmod(m, 7)[1], 100 - n, 2 * (n == m)]


def in_tables(n, m):
    found = {n: 1, m: 2}
    return [found[n], len(found), {7: 3}.get(m, 0)]


def in_c(n, m):
    return [sum(range(n)), int(np.zeros((m, 2)).size), len("x" * n), int(np.int32(m)), [4, 5, 6][n % 3]]


def as_text(n, m):
    return [len(f"{n} of {m}"), len(str(n)), int(f"{m}") + 1]


def of_floats(n, m):
    share = n / (m + 1)
    return [math.floor(share * 3.0), int(share > 2.5), round(share), int(math.log2(n + 1) * 2)]


def of_products(n, m):
    return [math.prod((n, 2, m)), sum([n, m, 1]), int(np.prod([n, m])), max([n, m, 9])]


CODE = [blocks, by_cases, in_tables, in_c, as_text, of_floats, of_products]


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("first", [(3, 64), (100, 8), (17, 17)])
def test_a_record_gives_what_the_code_does_or_nothing(code, first):
    with symbols.recording() as record:
        made = code(*map(record.argument, first))
    assert [int(x) for x in made] == code(*first)
    function = record.function(made)
    assert function(*first) == code(*first)
    for pair in itertools.product(VALUES, VALUES):
        assert function(*pair) in (None, code(*pair)), pair


def test_lengths_where_all_is_decided_alike_are_told():
    with symbols.recording() as record:
        n = record.argument(100)
        made = [n * 4, -(-n // 16) if n > 64 else 0]
    function = record.function(made)
    assert function(1000) == [4000, 63]
    assert function(64) is None


def test_no_code_in_c_sees_a_value_that_is_not_written_down():
    looks = [range, np.zeros, lambda n: [1] * n, "%d".__mod__, math.sqrt, float, np.asarray([1.0] * 200).take]
    looks += [
        lambda n: np.asarray(n).astype(int),
        lambda n: np.array([n], np.int64),
        lambda n: bytes(n),
        list(range(200)).pop,
    ]
    for look in looks:
        with symbols.recording() as record:
            look(record.argument(100))
        function = record.function([1])
        assert (function(100), function(101)) == ([1], None), look


def test_numbers_that_are_not_pythons_are_not_recorded():
    with symbols.recording() as record:
        n = record.argument(100)
        for other in (np.float32(2), np.arange(3), 1 + 2j):
            with pytest.raises((symbols.Unrecorded, TypeError)):
                n * other
            with pytest.raises((symbols.Unrecorded, TypeError)):
                assert n < other
        with pytest.raises(symbols.Unrecorded):
            assert n == np.float32(100)


def test_isinstance_holds_and_a_closed_record_has_plain_numbers():
    with symbols.recording() as record:
        n = record.argument(100)
        assert isinstance(n, int) and type(n) is Symbol and isinstance(n / 3, float)
    lines = list(record.lines)
    assert type(n + 1) is int and n == 100 and {n: 1} == {100: 1} and int(n) == 100 and record.lines == lines


def test_keys_that_differed_must_differ_again():
    with symbols.recording([40]) as record:
        n, m = record.argument(100), record.argument(200)
        made = [len({n, m, 40, 5})]
    function = record.function(made)
    assert function(300, 200) == [4]
    assert function(200, 200) is function(40, 200) is function(100, 5) is None


def test_keys_of_a_program_tell_numbers_by_their_names_and_decide_nothing():
    with symbols.recording() as record:
        n, m = record.argument(100), record.argument(100)
        old = {keys.of(((n, 3), "a")): 1}
        assert keys.of(((n, 3), "a")) in old and keys.of(((m, 3), "a")) not in old
        assert not keys.is_plain((1, (n, 2))) and not keys.is_plain(np.asarray(1)) and keys.is_plain((1, (2.5,)))
    assert keys.of((100, n)) == (100, n) and record.lines == []
    assert record.function([n])(7, 8) == [7]


def test_plain_arguments_are_remembered_while_others_record():
    asked = []

    @keys.remembered(8)
    def twice(pair):
        asked.append(pair)
        return pair[0] * 2

    with symbols.recording() as record:
        n = record.argument(8)
        assert [twice((8, 1)), twice((8, 1)), len(asked)] == [16, 16, 1]
        made = [twice((n, 1)), twice((n, 1))]
    assert len(asked) == 3 and twice((8, 1)) == 16 and len(asked) == 3
    assert record.function(made)(9) == [18, 18]


def test_an_operation_of_the_same_operands_is_written_down_once():
    with symbols.recording() as record:
        n, m = record.argument(100), record.argument(7)
        made = [(n + m) * 3 for _ in range(5)] + [1 if n > m else 0 for _ in range(5)]
        others = [n - 1, 1 - n, n - 1.0]
    assert [x.value for x in others] == [99, -99, 99.0]
    assert len([line for line in record.lines if line[1] in (operator.add, operator.gt)]) == 2
    assert record.function(made)(50, 8) == [174] * 5 + [1] * 5
    assert record.function(made)(1, 8) is None


def test_a_record_of_many_lines_is_read_as_far_as_it_holds():
    with symbols.recording() as record:
        n = made = record.argument(1000)
        for i in range(300):
            made = made + (n > i) * 2
    function = record.function([made])
    assert function(150) is None and function(2000) == [2600] and function(300) == [900] and function(0) is None


def test_numbers_that_are_turned_away_leave_no_cycle():
    """Of frames, which would keep all that their callers name until the garbage collector runs."""

    class Held:
        pass

    with symbols.recording() as record:
        n = record.argument(1000)
        made = 2 * n if n > 500 else n
    function = record.function([made])

    def call():
        held = Held()
        assert function(150) is None
        return weakref.ref(held)

    gc.disable()
    try:
        assert call()() is None
    finally:
        gc.enable()


def test_what_functions_decide_is_written_down_as_their_result():
    @symbols.decided
    def class_of(n, sizes, names):
        return names[sum(s < n for s in sizes)]

    names = ["short", "middle", "long"]
    with symbols.recording() as record:
        n, m = record.argument(100), record.argument(50)
        assert class_of(n, (m, 150), names) == "middle"
    function = record.function([n])
    assert function(120, 60) == [120]
    assert function(50, 60) is function(200, 60) is None
    assert class_of(20, (30, 40), names) == "short"


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_constants_are_computed_as_numpy_does(dtype):
    def code(x):
        with np.errstate(all="ignore"):
            y = symbols.array_of(np.multiply(np.add(x, x), np.asarray(3, dtype)))
            return [y.item() if y > 10 else -1.0, y.astype("float64").item()]

    with symbols.recording() as record:
        made = code(record.argument(np.asarray(7, dtype)))
        assert [float(x) for x in made] == code(np.asarray(7, dtype))
    names = {x.name for x in made if type(x) is Symbol}
    assert len(names) == 2
    told = record.function([round(x) for x in made])
    for n in (2, 5, 6, 1000):
        assert told(np.dtype(dtype).type(n)) in (None, [round(x) for x in code(np.asarray(n, dtype))])


def test_zeros_of_both_signs_are_two_numbers():
    with symbols.recording() as record:
        float(record.argument(0.0))
    function = record.function([1])
    assert (function(0.0), function(-0.0)) == ([1], None)


def test_numbers_of_records_before_are_plain_numbers():
    """Caches keep some; one that had the name of this record's own, by chance, stood for it in a solver's sizes."""
    with symbols.recording() as before:
        old = before.argument(64)
    with symbols.recording() as record:
        n = record.argument(64)
        made = [old, n, old + n, n - old, old * 2, old == n]
        assert n >= old and old < 2 * n
    function = record.function(made[:-1])
    assert function(64) == [64, 64, 128, 0, 128]
    assert function(65) is None  # it was asked whether they are equal


def test_constants_of_records_before_do_not_hide_those_of_this_one():
    with symbols.recording() as before:
        old = before.argument(np.asarray(3, np.float32))
    with symbols.recording() as record:
        x = record.argument(np.asarray(5, np.float32))
        made = np.add(old, x).item()
    assert type(made) is symbols.Symbol and made.record is record and made.value == 8
    assert record.function([made])(np.float32(7)) == [10.0]


def in_an_arena(n, m):
    arena = Arena()
    given = [arena.allocate(size) for size in (n * 4, m, 1000, n + m)]
    arena.release(*given[1])
    arena.release(*given[0])
    given += [arena.allocate(n), arena.extend(300), arena.allocate(2000)]
    arena.release(*given[2])
    given += [arena.allocate(m * 3), arena.allocate(n * 2)]
    return [*itertools.chain(*given), arena.peak]


@pytest.mark.parametrize("first", [(3, 64), (1000, 8)])
def test_where_blocks_of_an_arena_lie_decides_nothing(first):
    with symbols.recording() as record:
        made = in_an_arena(*map(record.argument, first))
    function = record.function(made)
    assert [int(x) for x in made] == in_an_arena(*first)
    for pair in itertools.product([1, *VALUES], VALUES):
        assert function(*pair) == in_an_arena(*pair), pair
    assert not any(name == "" for name, *_ in record.lines)


def named(n, m):
    """How many keys of a dictionary there are; and what is found by a number itself."""
    table = keys.Keys()
    return [len({table.plain(x) for x in (n, m, 64, n + 1, n + 3 - 2)}), {n: 1}[n]]


@pytest.mark.parametrize("first", [(3, 100), (63, 100), (8, 8)])
def test_keys_that_are_equal_at_each_length_are_one(first):
    """Others may become equal, or be so by chance: what is made once for each is the same, made twice."""
    with symbols.recording() as record:
        made = named(*map(record.argument, first))
    function = record.function(made)
    for pair in itertools.product([*VALUES, 7, 63], repeat=2):
        assert function(*pair) in ([4, 1], None), pair
    assert function(*first) == [4, 1]  # whatever is equal here
    assert [named(*pair) for pair in ((3, 100), (3, 64), (63, 100), (8, 8))] == [[4, 1], [3, 1], [3, 1], [3, 1]]


def test_numbers_that_hang_on_a_length_are_others_elsewhere():
    """Differences of places in a row hang on none, and what functions make is as they have it."""
    with symbols.recording() as record:
        n, m = record.argument(100), record.argument(7)
        hanging = [n, n - m, n % 16, n + symbols.as_float(m), n // 8, 128 - n]
        others = [(n + 3) - (n - 1), n - n, n * 0 + 5, 9, symbols.as_float(m) - symbols.as_float(m)]
        assert all(map(varying.varies, hanging)) and not any(map(varying.varies, others))
        conditions = [line for line in record.lines if not line[0]]
    assert not conditions and not any(map(varying.varies, hanging))  # plain numbers by now


def test_keys_may_be_what_other_numbers_of_the_program_are():
    """Numbers that are hashed may not: dictionaries do not say what they were compared with."""

    def found(code):
        with symbols.recording([5]) as record:
            made = code(record.argument(300))
        return record.function(made)(5)

    table = keys.Keys()
    assert found(lambda n: [{table.plain(n): n + 1}[table.plain(n)]]) == [6]
    assert found(lambda n: [int(table.of((n, 7)) == table.of((300, 7)))]) == [0]  # a plain number is another one
    assert found(lambda n: [{n: n + 1}[n]]) is None


def test_what_turned_numbers_away_is_asked_first():
    """Of a record of many lines, the condition alone is computed the next time, unless it hangs on too many."""
    asked = []

    @symbols.computed
    def noted(n):
        asked.append(n)
        return n

    def code(n, m):
        noted(n)
        made = noted(n) + 1
        for _ in range(3 * replayed.FEW_LINES):
            made = made * 2 % 1001
        return [made if m * 3 % 7 < 4 else 0]

    with symbols.recording() as record:
        made = code(record.argument(3), record.argument(7))
    function = record.function(made)
    asked.clear()
    assert [function(n, 9) for n in range(5)] == [None] * 5 and asked == [0]
    assert function(5, 8) == code(5, 8)
    assert len(function.first) == 1


def test_a_condition_that_others_guard_is_no_error_where_it_is_asked_first():
    def code(n, m):
        return [8 // m if m > 0 and 8 // m > 2 and n > 3 else 1]

    with symbols.recording() as record:
        made = code(record.argument(5), record.argument(2))
    function = record.function(made)
    for m in (4, 3, 2, 0, -1, 1):
        assert function(5, m) in (None, code(5, m))
    assert function(5, 0) is None and function(5, 2) == [4]


def test_a_record_calls_the_functions_themselves_whatever_their_names():
    def halved(n):
        return n // 2

    def other(n):
        return n + 7

    other.__name__ = other.__qualname__ = "halved"
    with symbols.recording() as record:
        n = record.argument(8)
        made = [symbols.computed(halved)(n), symbols.computed(other)(n), symbols.recorded(other)(n)]
    assert record.function(made)(20) == [10, 27, 27]


def test_equal_numbers_of_several_kinds_are_several_constants():
    with symbols.recording() as record:
        n = record.argument(8)
        made = [str(type(x.value)) for x in (n * 1.0, n + True, n - 0, n / 1)]
        made += [round(n * 2.5), symbols.decided(lambda x, kind: kind[0] and x > 2)(n, (True, 1, 1.0))]
        kept = [n * 2.0, n * 2]
    assert made == ["<class 'float'>", "<class 'int'>", "<class 'int'>", "<class 'float'>", 20, True]
    assert list(map(type, record.function(kept)(5))) == [float, int]


@pytest.mark.parametrize("first", [40, 90, 100, 199, 300])
def test_thresholds_leave_open_what_is_near_them(first):
    """A fifth less and more are what was planned; farther off, numbers are turned away."""
    with symbols.recording() as record:
        holds = thresholds.reaches(record.argument(first), 100)
        made = record.argument(first) + 1
    assert holds == (first >= 100) == thresholds.reaches(first, 100)
    function = record.function([made])
    served = [n for n in (10, 79, 80, 100, 119, 120, 900) if function(n, n) is not None]
    assert served == ([80, 100, 119, 120, 900] if holds else [10, 79, 80, 100, 119])


@pytest.mark.parametrize("first", [70, 110])
def test_thresholds_may_hang_on_numbers_themselves(first):
    with symbols.recording() as record:
        n, least = record.argument(first), record.argument(100)
        made = [n + 1, thresholds.reaches(n, least)]
    function = record.function(made[:1])
    assert made[1] == (first >= 100)
    served = [n for n in (10, 79, 80, 119, 120, 900) if function(n, 100) is not None]
    assert served == ([80, 119, 120, 900] if made[1] else [10, 79, 80, 119])
    assert function(1000, 1000) == [1001]


@pytest.mark.parametrize(("first", "served"), [(1, [1]), (7, [0, 1, 2, 7])])
def test_a_number_that_is_not_one_serves_for_it(first, served):
    with symbols.recording() as record:
        n = record.argument(first)
        assert thresholds.differs(n, 1) == (first != 1)
        made = [n * 2]
    function = record.function(made)
    assert [n for n in (0, 1, 2, 7) if function(n) is not None] == served


@pytest.mark.parametrize(("first", "served"), [(90, [10, 80, 81, 100]), (110, [81, 100, 101, 900])])
def test_what_exceeds_a_number_leaves_a_fifth_below_it_open(first, served):
    """Of memory for that much, a little less is taken, too; in less, no more has room."""
    with symbols.recording() as record:
        n = record.argument(first)
        assert thresholds.exceeds(n, 100) == (first > 100) == thresholds.exceeds(first, 100)
        made = [n * 2]
    function = record.function(made)
    assert [n for n in (10, 80, 81, 100, 101, 900) if function(n) is not None] == served
