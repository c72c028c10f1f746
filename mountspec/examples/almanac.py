#!/usr/bin/env python3
"""A service in Python: it reads its arguments as JSON from stdin and writes its result as JSON to stdout.

Lines on stderr go to the job's log; a line {"progress": ...} goes to its progress.json. The operation is in
ACHERON_OPERATION. An exit code other than 0 means a failed job; {"error": {"code", "message"}} on stdout gives the reason.
"""
import datetime
import json
import os
import sys

SYNODIC = 29.530588853  # days from new moon to new moon
NEW_MOON = datetime.datetime(2000, 1, 6, 18, 14)
PHASES = ["new", "waxing crescent", "first quarter", "waxing gibbous", "full", "waning gibbous", "last quarter", "waning crescent"]


def moon(date):
    noon = datetime.datetime.combine(date, datetime.time(12))
    age = ((noon - NEW_MOON).total_seconds() / 86400) % SYNODIC
    return PHASES[int(age / SYNODIC * 8 + 0.5) % 8]


def day(text):
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError as fault:
        print(json.dumps({"error": {"code": "invalid_payload", "message": f"{text!r} is no day: {fault}"}}))
        sys.exit(1)
    return {"date": date.isoformat(), "weekday": date.strftime("%A"), "day_of_year": date.timetuple().tm_yday, "moon": moon(date)}


def days(first, count):
    start = datetime.date.fromisoformat(day(first)["date"])
    found = []
    for number in range(count):
        print(json.dumps({"progress": {"done": number, "of": count}}), file=sys.stderr, flush=True)
        found.append(day((start + datetime.timedelta(days=number)).isoformat()))
    return {"days": found}


if __name__ == "__main__":
    arguments = json.load(sys.stdin)
    print(f"asked for {os.environ['ACHERON_OPERATION']}", file=sys.stderr)
    json.dump({"day": day, "days": days}[os.environ["ACHERON_OPERATION"]](**arguments), sys.stdout)
