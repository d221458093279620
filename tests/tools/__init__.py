"""Tests of the ways to reach the world, and what they share."""
