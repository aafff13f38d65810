// What `serve()` takes for Stepflow.

export interface StepflowOptions {
  /**
   * A configuration file of Stepflow, or a folder with one. It may start programs: name only what you would run yourself. Without one,
   * workers may connect to the queues `python` and `default`, and workers of every other protocol serve the rest.
   */
  config?: string;
  /** `host:port` under which workers reach this server, when it is not where they came; `STEPFLOW_ORCHESTRATOR_URL`. */
  orchestratorUrl?: string;
  /** A folder whose files `load_file` may read, and so everyone who may start a run. None when absent, and never the working directory. */
  files?: string;
  /** Variables of this process's environment that flows may read by `env_var`, and so everyone who may start a run. None when absent. */
  variables?: readonly string[];
}

/** The field of `ServeOptions` that is Stepflow's. */
export interface StepflowServing {
  /** Which plugins and routes flows of Stepflow have. */
  stepflow?: StepflowOptions;
}
