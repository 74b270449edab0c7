"""Engines: given a plan and a table of events, which rows form matches?"""
