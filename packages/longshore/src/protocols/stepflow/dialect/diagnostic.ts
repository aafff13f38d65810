// The kinds of findings about a flow before it runs. The thousands digit of the code is the severity.

import type { JsonPath } from "../../../core/json/json-position.ts";
import { pathText } from "./path.ts";

export const diagnosticCodes = {
  unreachableStep: 1000,
  missingFlowName: 1001,
  missingFlowDescription: 1002,
  unvalidatedFieldAccess: 1003,
  missingVariableSchema: 1004,
  untypedComponentOutput: 1100,
  typeCheckIndeterminate: 1101,
  noPluginsConfigured: 1200,
  noRoutingRulesConfigured: 1201,
  unusedPlugin: 1202,
  mockComponent: 1500,
  invalidFieldAccess: 2000,
  emptyComponentName: 2001,
  schemaViolation: 2002,
  invalidSubflowLiteral: 2003,
  undefinedVariable: 2004,
  undefinedRequiredVariable: 2005,
  typeMismatch: 2100,
  unknownPropertyInPath: 2101,
  invalidRouteReference: 2200,
  invalidComponent: 2500,
  duplicateStepId: 3000,
  emptyStepId: 3001,
  selfReference: 3002,
  undefinedStepReference: 3003,
  invalidReferenceExpression: 3004,
  /** Our addition; the reference has no such finding. */
  unusablePattern: 3100,
} as const;
export type DiagnosticKind = keyof typeof diagnosticCodes;

/** The numbers of the wire. A flow with a fatal finding is not stored. */
export const diagnosticLevels = { fatal: 1, error: 2, warning: 3 } as const;
export type DiagnosticLevel = keyof typeof diagnosticLevels;

export interface Diagnostic {
  readonly kind: DiagnosticKind;
  readonly code: number;
  readonly level: DiagnosticLevel;
  readonly message: string;
  /** The place in the flow, or in the configuration for codes 12xx and 22xx. */
  readonly at: JsonPath;
  /** The same place as text: `$.steps[0].input`. */
  readonly path: string;
  /** The finding may be wrong, because it cannot be decided. */
  readonly experimental: boolean;
  /** The expected value, if known. */
  readonly expected?: string;
}

export function diagnostic(
  kind: DiagnosticKind,
  at: JsonPath,
  message: string,
  fields: Partial<Pick<Diagnostic, "experimental" | "expected">> = {},
): Diagnostic {
  const code = diagnosticCodes[kind];
  const level = code >= 3_000 ? "fatal" : code >= 2_000 ? "error" : "warning";
  return { kind, code, level, message, at, path: pathText(at), experimental: false, ...fields };
}
