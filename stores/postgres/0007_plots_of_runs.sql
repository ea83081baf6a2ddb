-- The runs whose requests may name uploaded plots, so that sets without a run are found without reading all runs.
CREATE INDEX runs_with_plots ON runs (thread_id) WHERE strpos(request, 'plots-') > 0;
