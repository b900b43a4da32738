"""What runs an agent, if it is not our own loop."""
