"""Rubrics: the contract under which responses are judged."""
