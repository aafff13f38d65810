import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { templateData } from "../../../../test/support/template-data.ts";
import type { Json } from "../../../core/json/json.ts";
import { compileValue, readsOf } from "./expression.ts";
import { type Context, filledCharsMax, fillValue } from "./fill.ts";
import { javaText } from "./java-text.ts";
import { quote, unquote } from "./quoting.ts";
import { fillSecrets } from "./secrets.ts";

const entries: { [name: string]: Json } = {
  workflow: { input: { who: "Ann", n: 3, list: [1, 2], deep: { a: { b: null } } }, variables: { v: true }, workflowId: "w1" },
  t1: {
    output: {
      x: { y: 1 },
      key: "who",
      list: [
        { id: "a", n: 1 },
        { id: "b}", n: 2 },
      ],
      literal: "${workflow.input.who}",
    },
    endTime: 17,
  },
};
const context: Context = {
  entry: (name) => entries[name] ?? null,
  document: () => entries,
  isData: () => true,
  environment: (name) => (name === "REGION" ? "eu" : name === "SHAPE" ? '{"w":2}' : null),
  taskId: "task-1",
};
const fill = (value: Json, around: Partial<Context> = {}) => fillValue(compileValue(value), { ...context, ...around });
const filled = (value: Json): Json => (fill(value) as { value: Json }).value;

describe("one expression alone", () => {
  it("keeps the type of its value", () => {
    expect(filled("${workflow.input.n}")).toBe(3);
    expect(filled("${workflow.input.list}")).toEqual([1, 2]);
    expect(filled("${t1.output.x}")).toEqual({ y: 1 });
    expect(filled("${workflow.variables.v}")).toBe(true);
    expect(filled("${t1.endTime}")).toBe(17);
  });

  it("is null when there is no value", () => {
    for (const text of ["${workflow.input.none}", "${nobody.output.x}", "${workflow.input.deep.a.b.c}", "${a b}"])
      expect(filled(text)).toBeNull();
  });

  it("is an empty text when it is blank", () => {
    expect(filled("${}")).toBe("");
    expect(filled("${  }")).toBe("");
  });

  it("can read the task's own id, but no other variable of the server", () => {
    expect(filled("${CPEWF_TASK_ID}")).toBe("task-1");
    expect(filled("${PATH}")).toBeNull();
    expect(filled("${HOME}")).toBeNull();
  });

  it("reads named environment variables, also values inside when they are JSON", () => {
    expect(filled("${workflow.env.REGION}")).toBe("eu");
    expect(filled("${workflow.env.SHAPE.w}")).toBe(2);
    expect(filled("${workflow.env.REGION.w}")).toBeNull();
    expect(filled("${workflow.env.NONE}")).toBeNull();
  });
});

describe("texts", () => {
  it("[C122] are filled in with texts and numbers, and with objects in the manner of Java", () => {
    expect(filled("Dear ${workflow.input.who}, ${workflow.input.n} of ${t1.output.x}")).toBe("Dear Ann, 3 of {y=1}");
    expect(filled("x${workflow.input.none}")).toBe("xnull");
    expect(filled("${t1.endTime}")).toBe(17);
    expect(filled("${workflow.input.${t1.output.key}}")).toBe("Ann");
    expect(filled("${t1.output.list[?(@ == {'id': 'a', 'n': 1})].n}")).toEqual([1]);
    expect(filled("$${workflow.input.who}")).toBe("${workflow.input.who}");
  });

  it("resolve expressions inside expressions from the inside out", () => {
    expect(filled("${${workflow.input.none}}")).toBeNull();
    expect(filled("a ${workflow.input.${t1.output.key}} b")).toBe("a Ann b");
    expect(filled("${t1.output.list[${t1.output.x.y}].n}")).toBe(2);
  });

  it("keep unclosed braces and single dollar signs unchanged", () => {
    expect(filled("${workflow.input.who")).toBe("${workflow.input.who");
    expect(filled("$5 {x} ${a ${workflow.input.n}")).toBe("$5 {x} ${a 3");
  });

  it("are escaped by a second dollar sign, and expressions inside are filled in", () => {
    expect(filled("a $${b} ${workflow.input.n}")).toBe("a ${b} 3");
    expect(filled("$${a${workflow.input.n}}")).toBe("${a3}");
  });

  it("are not evaluated a second time after they were filled in", () => {
    expect(filled("${t1.output.literal}")).toBe("${workflow.input.who}");
    expect(filled("<${t1.output.literal}>")).toBe("<${workflow.input.who}>");
  });
});

describe("values", () => {
  it("are filled in at any depth, except for keys", () => {
    expect(filled({ a: ["${workflow.input.n}", { "${k}": "${t1.endTime}" }], b: null, c: 1.5 })).toEqual({
      a: [3, { "${k}": 17 }],
      b: null,
      c: 1.5,
    });
  });

  it("keep a key named __proto__ as a key", () => {
    const value = filled(JSON.parse('{"__proto__": "${workflow.input.n}"}') as Json);
    expect(JSON.stringify(value)).toBe('{"__proto__":3}');
  });

  it("request entries that are not loaded yet", () => {
    const unloaded = { entry: (name: string) => (name === "workflow" ? entries.workflow : undefined), document: () => undefined };
    expect(fill({ a: "${t1.output.x}", b: "${t2.output.x} ${workflow.input.n}" }, unloaded)).toEqual({ needs: ["t1", "t2"] });
    expect(fill("${$..x}", unloaded)).toEqual({ needs: [] });
    expect(filled("${$..y}")).toEqual([1]);
  });

  it("list which entries they read before they are filled in", () => {
    const reads = readsOf(compileValue({ a: "${t1.output.x} ${workflow.input.y}", b: ["${t2.output.${t3.output.k}}"], c: "${x y}" }));
    expect([...reads.names].sort()).toEqual(["t1", "t2", "t3", "workflow"]);
    expect(reads.document).toBe(false);
    expect(reads.unreadable).toHaveLength(1);
    expect(readsOf(compileValue("${$..x}")).document).toBe(true);
    expect(readsOf(compileValue("plain")).names.size).toBe(0);
  });

  it("are refused when they would become larger than a task's input may be", () => {
    const large = "x".repeat(filledCharsMax / 4);
    const around = { entry: () => large };
    expect(fill(["${a}", "${a}"], around)).toHaveProperty("value");
    expect(fill(["${a}", "${a}", "${a}", "${a}"], around)).toEqual({ failed: expect.stringMatching(/larger than/) });
  });

  it("are refused when all their paths together read too much", () => {
    const list = Array.from({ length: 2_000 }, (_, at) => ({ at }));
    const value = Array.from({ length: 400 }, () => "${a[?(@.at == -1)]}");
    expect(fill(value, { entry: () => list })).toEqual({ failed: expect.stringMatching(/looks at more/) });
  });

  it("are refused when all their functions together read too much, soon after the limit is reached", () => {
    const list = Array.from({ length: 60_000 }, (_, at) => at);
    const looked: number[] = [];
    const around = { entry: () => ({ x: list }), looked: (values: number) => void looked.push(values) };
    const value = Array.from({ length: 1_000 }, () => "a${workflow.x.sum()}");
    expect(fill("${workflow.x.sum()}", around)).toHaveProperty("value");
    expect(fill(value, around)).toEqual({ failed: expect.stringMatching(/looks at more/) });
    expect(looked[1]).toBeGreaterThan(65_536);
    expect(looked[1]).toBeLessThan(65_636);
  });
});

describe("secrets", () => {
  const secret = (name: string) => ({ key: "s3cret", shape: '{"user":"ann"}' })[name] ?? null;

  it("stay literal when values are filled in", () => {
    expect(filled("${workflow.secrets.key}")).toBe("${workflow.secrets.key}");
    expect(filled("Bearer ${workflow.secrets.key} ${workflow.input.n}")).toBe("Bearer ${workflow.secrets.key} 3");
  });

  it("are put in afterwards, at any depth", () => {
    const stored = filled({ a: ["${workflow.secrets.key}"], b: "Bearer ${workflow.secrets.key}", c: "${workflow.secrets.shape.user}" });
    expect(fillSecrets(stored, secret)).toEqual({ a: ["s3cret"], b: "Bearer s3cret", c: "ann" });
    expect(fillSecrets({ a: "${workflow.secrets.none}", b: "${workflow.secrets.key.x}" }, secret)).toEqual({ a: null, b: null });
  });
});

describe("data that looks like templates", () => {
  const secret = (name: string) => (name === "S1" ? "hunter2" : null);
  /** The input that a worker receives for `value` when `x` and `y` are data. */
  const handed = (value: Json, x: Json, y: Json): Json => {
    const around: Partial<Context> = { entry: () => ({ output: { x, y } }), environment: () => JSON.stringify(x) };
    return fillSecrets((fill(value, around) as { value: Json }).value, secret);
  };
  const asText = (value: Json) => (typeof value === "string" ? value : javaText(value));
  const property = (check: (x: Json, y: Json) => void) => fc.assert(fc.property(templateData, templateData, check), { numRuns: 2_000 });

  it("is handed out unchanged", () => {
    property((x, y) => {
      expect(handed({ a: "${t.output.x}", b: ["${t.output}"], c: "${workflow.env.E}" }, x, y)).toEqual({
        a: x,
        b: [{ x, y }],
        c: JSON.stringify(x),
      });
    });
  });

  it("is handed out unchanged when texts are joined, and only the definition's own secrets are filled in", () => {
    property((x, y) => {
      expect(handed("${t.output.x}${t.output.y}", x, y)).toBe(asText(x) + asText(y));
      expect(handed("${t.output.x}${workflow.secrets.S1}${t.output.y}", x, y)).toBe(`${asText(x)}hunter2${asText(y)}`);
      expect(handed("${t.output.x}{workflow.secrets.S1}", x, y)).toBe(`${asText(x)}{workflow.secrets.S1}`);
    });
  });

  it("is the same after it was stored and read again", () => {
    property((x, y) => {
      const stored = (fill("${t.output.x} ${workflow.secrets.S1}", { entry: () => ({ output: { x, y } }) }) as { value: Json }).value;
      const again = fill({ v: "${workflow.variables.v}" }, { entry: () => ({ variables: { v: stored } }), isData: () => false });
      expect(fillSecrets((again as { value: Json }).value, secret)).toEqual({ v: `${asText(x)} hunter2` });
      expect(unquote(quote(x))).toEqual(x);
    });
  });
});

describe("any text", () => {
  const piece = fc.constantFrom(
    "${",
    "$${",
    "}",
    "{",
    "workflow",
    ".input",
    ".n",
    "t1",
    ".output",
    "[0]",
    "[?(",
    ")]",
    " ",
    "$",
    "x",
    "secrets.",
  );

  it("is filled in without an error", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const result = fill(pieces.join(""));
        expect(JSON.stringify("value" in result ? result.value : result)).toBeTypeOf("string");
      }),
      { numRuns: 2_000 },
    );
  });

  it("without a dollar sign before a brace stays unchanged", () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes("${")),
        (text) => filled(text) === text,
      ),
    );
  });

  it("that is nested a thousand times is null, and not an error", () => {
    expect(filled(`${"${".repeat(1_000)}x${"}".repeat(1_000)}`)).toBeNull();
  });
});
