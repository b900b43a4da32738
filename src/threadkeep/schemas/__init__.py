"""JSON schemas that strangers wrote: checked here if that is cheap, otherwise in a confined process."""
