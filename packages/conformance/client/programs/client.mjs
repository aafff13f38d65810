// Uses the built client on the runtime that runs this file. Arguments: MODULE URL SOURCE, where SOURCE is a workflow of one step.
const [module, url, source] = process.argv.slice(2);
const { connect, RunFailed } = await import(module);
const client = connect(url);
const workflow = { name: "doubling", source: JSON.parse(source) };

const run = await client.start(workflow, 4, { key: "first" });
const again = await client.start(workflow, 4, { key: "first" });
console.log(`started ${run.id === again.id}`);

const states = [];
const following = (async () => {
  for await (const { kind, state } of run.events()) {
    states.push(`${kind} ${state}`);
    if (kind === "run" && state === "running") console.log("following");
  }
})();
console.log(`result ${await run.result()}`);
await following;
console.log(`events ${states[0]}, ${states.at(-1)}`);

console.log(`call ${await client.call("double", 5)}`);
const failed = await client.start("doubling", "x");
console.log(`failed ${await failed.result().catch((error) => error instanceof RunFailed && error.run.state)}`);
let runs = 0;
for await (const _ of client.runs({ workflow: "doubling" })) runs++;
console.log(`runs ${runs}`);
