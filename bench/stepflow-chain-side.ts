// One long flow, each step after the one before. The worker has noted what early and late steps cost.
import { openConnection } from "./http-connection.ts";
import { answerApart } from "./processes.ts";

export interface ChainRequest {
  readonly url: string;
  readonly steps: number;
  readonly warmUpSteps: number;
  readonly spans: readonly { readonly from: number; readonly to: number }[];
}

export interface ChainAnswer {
  readonly spans: readonly { readonly milliseconds: number; readonly cpu: number }[];
  readonly seconds: number;
}

/** Longer than the longest chain takes. */
const TIMEOUT_SECONDS = 150;

await answerApart<ChainRequest, ChainAnswer>(async ({ url, steps, warmUpSteps, spans }) => {
  const connection = await openConnection(url, "undici");
  const post = async <T>(path: string, body: unknown): Promise<T> => {
    const answer = await connection.request("POST", `/api/v1${path}`, JSON.stringify(body));
    if (answer.status !== 200) throw new Error(`POST ${path} was answered with ${answer.status}: ${answer.body.slice(0, 500)}`);
    return JSON.parse(answer.body) as T;
  };
  const run = async <Output>(name: string, flowSteps: readonly unknown[], output: unknown, input: unknown): Promise<Output | undefined> => {
    const { flowId } = await post<{ flowId: string }>("/flows", { flow: { name, description: "long", steps: flowSteps, output } });
    const wait = { wait: true, timeoutSecs: TIMEOUT_SECONDS };
    const { results } = await post<{ results: { output?: Output }[] }>("/runs", { flowId, input: [input], ...wait });
    return results[0]?.output;
  };
  const chain = async (length: number): Promise<void> => {
    const from = (index: number): unknown => (index === 0 ? { $input: "$" } : { $step: `s${index - 1}` });
    const links = Array.from({ length }, (_none, index) => ({ id: `s${index}`, component: "/python/link", input: from(index) }));
    const last = await run<{ index: number }>(`chain-${length}`, links, { $step: `s${length - 1}` }, { index: 0 });
    if (last?.index !== length) throw new Error(`the flow of ${length} steps ended with ${JSON.stringify(last)}`);
  };

  await chain(warmUpSteps);
  const before = performance.now();
  await chain(steps);
  const seconds = (performance.now() - before) / 1000;
  const asked = [{ id: "s1", component: "/python/spans", input: { $input: "$" } }];
  const answer = await run<ChainAnswer["spans"]>("spans", asked, { $step: "s1" }, { spans });
  connection.close();
  return { spans: answer ?? [], seconds };
});
