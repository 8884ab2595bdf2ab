"""A plugin of cigen on becket, for `mini_host.py`: its messages are classes, and of protobuf it sees nothing."""

from __future__ import annotations

from becket import ExtensionServer, handles
from becket.adapters.cigen import (
    GENERATE,
    PLAN,
    CigenDiagnostic,
    CigenResource,
    Fragment,
    GenerateRequest,
    GenerateResult,
    Level,
    MergeStrategy,
    PlanRequest,
    PlanResult,
    ResourceType,
)
from becket.contract.handshake import DeclaredCapability


class Listing(ExtensionServer):
    """Generates a list of the jobs of a project."""

    id, version = "listing", "1.0.0"
    capabilities = (DeclaredCapability("provider", "listing", params={"conflicts_with": ["provider:*"]}),)

    @handles(PLAN)
    async def plan(self, request: PlanRequest) -> PlanResult:
        jobs = request.schema.jobs if request.schema else ()
        if not jobs:
            return PlanResult(
                diagnostics=(CigenDiagnostic(Level.ERROR, "LIST_001", "No jobs", "the schema has no jobs"),)
            )
        return PlanResult(tuple(CigenResource(f"job:{job.id}", ResourceType.JOB) for job in jobs))

    @handles(GENERATE)
    async def generate(self, request: GenerateRequest) -> GenerateResult:
        if not request.graph:
            raise ValueError("a secret of the implementation")
        lines = [f"- {resource.id.removeprefix('job:')}" for resource in request.graph]
        fragment = Fragment("jobs.md", "\n".join(lines) + "\n", MergeStrategy.REPLACE, format="text")
        return GenerateResult((fragment,))


if __name__ == "__main__":
    Listing().run()
