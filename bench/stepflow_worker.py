"""The Python worker of the Stepflow benchmark: the unchanged SDK with the two components that are measured."""
from stepflow_py.worker.main import main, server

executions: dict[int, int] = {}


@server.component(name="tally")
async def tally(input: dict) -> dict:
    executions[input["n"]] = executions.get(input["n"], 0) + 1
    return input


@server.component(name="report")
async def report(input: dict) -> dict:
    return {"distinct": len(executions), "extra": sum(executions.values()) - len(executions)}


if __name__ == "__main__":
    main()
