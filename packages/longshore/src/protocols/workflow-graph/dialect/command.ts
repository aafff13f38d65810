// Builds one shell command from a job's environment, steps and texts. Parts are joined with `&&`, so that nothing runs after a failure:
//
//   export G='it'\''s' && echo '=== one ===' && echo one && ( export X='1' && echo '=== two ===' && { echo two
//   echo three
//   } )
//
// A step with more than one plain command is grouped, because otherwise `&&` would protect only its first line. A step with its own
// environment runs in a subshell, so that later steps do not get this environment.

export interface ShellStep {
  label: string;
  env: readonly EnvVar[];
  run: string;
}

export interface EnvVar {
  name: string;
  value: string;
}

const envNamePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Any other text instead of a name would be executed as shell text. */
export function isEnvName(name: string): boolean {
  return envNamePattern.test(name);
}

/** A job of one text. */
export function runCommand(env: readonly EnvVar[], run: string): string {
  const text = run.trim();
  if (env.length === 0) return text;
  return join([...exports(env), grouped(text)]);
}

/** A job of several steps. */
export function stepsCommand(env: readonly EnvVar[], steps: readonly ShellStep[]): string {
  return join([...exports(env), ...steps.map(stepCommand)]);
}

export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function stepCommand(step: ShellStep): string {
  const body = join([...exports(step.env), `echo ${shellQuote(`=== ${step.label} ===`)}`, grouped(step.run.trim())]);
  return step.env.length === 0 ? body : `( ${body} )`;
}

function exports(env: readonly EnvVar[]): string[] {
  return env.map(({ name, value }) => `export ${name}=${shellQuote(value)}`);
}

/** Groups a text if `&&` could separate its parts, or if its comment would hide what follows. */
function grouped(text: string): string {
  return /[\n\r#;&|\\<(){}!]/.test(text) ? `{ ${text}\n}` : text;
}

function join(commands: readonly string[]): string {
  return commands.filter((command) => command !== "").join(" && ");
}
