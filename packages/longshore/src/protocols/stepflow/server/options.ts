// The options of `serve()` for Stepflow.

export interface StepflowOptions {
  /**
   * A Stepflow configuration file, or a folder that contains one. It may start programs: name only files that you trust. Default: workers
   * may connect to the queues `python` and `default`, and workers of other protocols serve the remaining components.
   */
  config?: string;
  /**
   * The `host:port` under which workers reach this server. Default: `STEPFLOW_ORCHESTRATOR_URL`, else the address that they used
   * themselves.
   */
  orchestratorUrl?: string;
  /** A folder whose files `load_file` may read; every caller that may start a run can then read them. Default: none. */
  files?: string;
  /**
   * Environment variables of this process that flows may read with `env_var`; every caller that may start a run can then read them.
   * Default: none.
   */
  variables?: readonly string[];
}

/** The field of `ServeOptions` for Stepflow. */
export interface StepflowServing {
  /** Plugins, routes and permissions of Stepflow flows. */
  stepflow?: StepflowOptions;
}

/** The keys of a configuration file for Stepflow. */
export interface StepflowSettings {
  /** A file with plugins and routes for Stepflow flows. It may start programs: name only files that you trust. */
  stepflowConfig?: string;
  /** A folder that Stepflow flows may read with `load_file`. */
  stepflowFiles?: string;
  /** Environment variables that flows may read with `env_var`. */
  stepflowEnv?: string | readonly string[];
}
