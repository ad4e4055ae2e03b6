"""The work: job, submission, lease, provider, video."""
