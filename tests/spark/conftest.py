"""One Spark session for all tests of this folder that need one, as users have it: in a zone whose clocks are put."""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ZONE = "America/New_York"  # of the machine, as Java sees it: the session itself sets none


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """What a user need not set is not set, but for what spares time: few partitions, little memory, no web page."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder = tmp_path_factory.mktemp("spark")
    java = f"-Duser.timezone={ZONE} -Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2]").appName("cepheid-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # errors are raised, too; the log would only repeat them
    assert session.conf.get("spark.sql.session.timeZone") == ZONE
    yield session
    session.stop()
