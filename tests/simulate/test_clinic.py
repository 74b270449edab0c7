"""The clinic."""

from cepheid.simulate import clinic_doses


def test_truth_is_every_pair_the_query_describes() -> None:
    simulation = clinic_doses(3_000, patients=40, extra=0.3, seed=1)
    assert simulation.truth is not None
    doses = [row for row in simulation.events.to_pylist() if row["medicine"] == "Antibiotics"]
    expected = sorted(
        (x["name"], x["ts"], y["ts"], x["amount"] + y["amount"])
        for x in doses
        for y in doses
        if x["name"] == y["name"] and x["ts"] < y["ts"] < x["ts"] + 240 and x["amount"] + y["amount"] > 1_000
    )
    found = sorted(
        (row["name"], row["first_ts"], row["second_ts"], row["total"]) for row in simulation.truth.to_pylist()
    )
    assert found == expected
    assert len(found) > 50
    assert any(name == "John" for name, *_ in found)


def test_one_medicine_a_patient_and_john_takes_antibiotics() -> None:
    rows = clinic_doses(5_000, patients=30, seed=2).events.to_pylist()
    medicines = {(row["name"], row["medicine"]) for row in rows}
    assert len(medicines) == 30
    assert ("John", "Antibiotics") in medicines
    assert len({medicine for _, medicine in medicines}) > 1
    assert {row["type"] for row in rows} == {"MEDICINE-TAKEN"}


def test_patients_who_keep_to_the_prescription_take_no_overdose() -> None:
    simulation = clinic_doses(5_000, extra=0.0, antibiotics=1.0, seed=3)
    assert simulation.truth is not None
    assert simulation.truth.num_rows == 0
