// The configuration of both orchestrators: built-in components, and mock components with configured outputs. The input of a mock is a key of
// the file and need not be a string, so the file is YAML and cannot be JSON.
export const config = `
plugins:
  builtin: { type: builtin }
  mock:
    type: mock
    components:
      /one:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? { in: a }
          : { outcome: success, result: { out: b } }
          ? { in: hello }
          : { outcome: success, result: { out: world } }
      /two:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? { in: b }
          : { outcome: success, result: { x: 1 } }
          ? { in: world }
          : { outcome: success, result: { x: 2 } }
      /fails:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? {}
          : { outcome: failed, error: { code: COMPONENT_FAILED, message: as it was told } }
      /unavailable:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? {}
          : { outcome: failed, error: { code: RESOURCE_UNAVAILABLE, message: not now } }
      /invalid:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? {}
          : { outcome: failed, error: { code: INVALID_INPUT, message: not like this } }
      /breaks:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? {}
          : { error: it broke }
      /null:
        input_schema: {}
        output_schema: {}
        behaviors:
          ? {}
          : { outcome: success, result: null }
routes:
  /builtin: [{ plugin: builtin }]
  /mock: [{ plugin: mock }]
storageConfig: { type: inMemory }
retry: { transportMaxRetries: 1, backoff: { type: constant, delayMs: 10 } }
`;
