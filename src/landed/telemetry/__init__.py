"""Telemetry: watches what was committed and what left, and decides nothing (`landed[otel]`)."""
