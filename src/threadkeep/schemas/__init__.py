"""JSON schemas that strangers wrote: checked in our process if that is cheap, otherwise in a worker."""
