// The files of a new project, as `longshore init` writes them. A test compiles them, runs their test and serves them.

const app = `import { task, workflow } from "longshore";

export interface Order {
  item: string;
  count: number;
}

export const price = task("price", async ({ item, count }: Order, ctx) => {
  ctx.log(\`\${count} x \${item}\`);
  return { total: count * 19.5 };
});

export const pay = task("pay", async ({ total }: { total: number }, ctx) => {
  // The first attempt fails. The step below says how often it is tried.
  if (ctx.attempt === 1) throw new Error("the bank did not answer");
  return { receipt: \`R-\${total}\` };
});

// A durable function: after a crash, it continues where it was.
export const order = workflow("order", async (w, input: Order) => {
  const { total } = await w.step(price, input);
  if (total > 100) {
    // Waits without holding anything in memory, for days if need be.
    const answer = await w.signal<{ ok: boolean }>("approve", { timeout: "2d" });
    if (!answer.ok) return { state: "refused" as const };
  }
  const { receipt } = await w.step(pay, { total }, { retry: { limit: 3, backoff: { kind: "fixed", delayMs: 200 } } });
  return { state: "paid" as const, total, receipt };
});
`;

const test = `import assert from "node:assert/strict";
import { after, test } from "node:test";
import { work } from "longshore";
import { serve } from "longshore/server";
import { order, pay, price } from "./app.ts";

// A whole server in memory, without a port.
const server = await serve({ ephemeral: true, port: null });
const worker = await work({ tasks: [price, pay], workflows: [order], on: server, signals: false });
after(async () => {
  await worker.stop();
  await server.close();
});

test("a small order is paid, on the second attempt", async () => {
  const run = await server.start(order, { item: "lantern", count: 2 });
  assert.deepEqual(await run.result(), { state: "paid", total: 39, receipt: "R-39" });
});

test("a large order needs an approval", async () => {
  const run = await server.start(order, { item: "lantern", count: 20 });
  await run.signal("approve", { ok: false });
  assert.deepEqual(await run.result(), { state: "refused" });
});
`;

const tsconfig = `{
  "compilerOptions": {
    "target": "es2023",
    "module": "nodenext",
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "skipLibCheck": true,
    "types": ["node"]
  },
  "include": ["*.ts"]
}
`;

const readme = (name: string) => `# ${name}

A durable workflow, its two tasks and a test. The code is in \`app.ts\`.

\`\`\`sh
npm install
npm test        # runs app.test.ts
npm run check   # checks the types
npm run dev     # serves app.ts; loads it again after every change
\`\`\`

\`npm run dev\` listens on http://127.0.0.1:4500 and keeps its data in \`.longshore\`. In another terminal:

\`\`\`sh
npx longshore run order --input '{"item":"lantern","count":2}' --follow
npx longshore run order --input '{"item":"lantern","count":20}'   # prints the id of a run that waits for an approval
npx longshore signal RUN approve '{"ok":true}'                    # RUN is that id
npx longshore runs
\`\`\`
`;

/** The contents by file name. `version` is that of this package. */
export function projectFiles(name: string, version: string): Readonly<Record<string, string>> {
  const manifest = {
    name,
    private: true,
    type: "module",
    scripts: { dev: "longshore dev app.ts", test: "node --import tsx --test app.test.ts", check: "tsc" },
    dependencies: { longshore: `^${version}` },
    devDependencies: { "@types/node": "^20.19.0", tsx: "^4.20.0", typescript: "^6.0.0" },
  };
  return {
    "app.ts": app,
    "app.test.ts": test,
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    "tsconfig.json": tsconfig,
    "README.md": readme(name),
  };
}
