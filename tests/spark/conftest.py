"""One Spark session for all tests of this folder that need one."""

from pathlib import Path

import pytest

from cepheid.runners.spark.session import start_session

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))  # one session, so one process


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    session = start_session(
        "local[2]",
        "cepheid-tests",
        **{
            "spark.sql.shuffle.partitions": 2,
            "spark.driver.memory": "1g",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.streaming.noDataMicroBatches.enabled": "true",
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    session.sparkContext.setLogLevel("OFF")  # errors are raised, too; the log would only repeat them
    yield session
    session.stop()
