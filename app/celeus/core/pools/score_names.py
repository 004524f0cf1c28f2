"""Names of the losses of one system whose user named no score."""

ERROR_RATE = "error rate"
MEAN_LOSS = "mean loss"
MEAN_CROSS_ENTROPY = "mean cross-entropy loss"
UNNAMED = (ERROR_RATE, MEAN_LOSS, MEAN_CROSS_ENTROPY)
