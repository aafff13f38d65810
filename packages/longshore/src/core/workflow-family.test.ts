import { describe, expect, it } from "vitest";
import { workflowFamily } from "./workflow-family.ts";

interface Workflow {
  name: string;
  source: object;
  uses: Workflow[];
}

function workflow(name: string, uses: Workflow[] = [], source: object = { name }): Workflow {
  return { name, source, uses };
}

describe("a workflow with its child workflows", () => {
  it("has children before their parents, each once", () => {
    const leaf = workflow("leaf");
    const left = workflow("left", [leaf]);
    const right = workflow("right", [leaf, left]);
    expect(workflowFamily([workflow("root", [right, left]), left]).map(({ name }) => name)).toEqual(["leaf", "left", "right", "root"]);
  });

  it("has a workflow once when two copies of a module export it", () => {
    expect(workflowFamily([workflow("a"), workflow("b", [workflow("a")])]).map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("in which a workflow runs itself is refused, with an alternative", () => {
    const [a, b] = [workflow("a"), workflow("b")];
    a.uses.push(b);
    b.uses.push(a);
    expect(() => workflowFamily([a])).toThrow("a runs b runs a: a workflow cannot run itself.");
  });

  it("in which two different workflows have one name is refused", () => {
    const other = workflow("a", [], { steps: [] });
    expect(() => workflowFamily([workflow("a"), workflow("b", [other])])).toThrow(/Two different workflows are called a/);
  });
});
