"""Java is looked for before Spark, and what is missing is said in one sentence."""

import pytest

from cepheid.errors import CepheidError
from cepheid.runners.spark.session import java_problem, java_version, start_session


def fake_java(folder, told):
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)


def test_an_old_java_is_named(tmp_path, monkeypatch):
    fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = java_problem()
    assert problem is not None
    assert "Java 17 or newer" in problem
    assert "is 11" in problem
    with pytest.raises(CepheidError, match="openjdk-17-jre-headless"):
        start_session()


def test_a_new_java_is_fine(tmp_path, monkeypatch):
    fake_java(tmp_path, 'openjdk version "25.0.1" 2025-10-21')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_problem() is None


def test_no_java_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "none was found" in (java_problem() or "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "does not run" in (java_problem() or "")


def test_versions_of_all_ages():
    assert java_version('java version "1.8.0_402"') == 8
    assert java_version('openjdk version "21-ea" 2023-09-19') == 21
    assert java_version("command not found") is None
