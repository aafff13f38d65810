import { openOwnArtifacts } from "../support/flowkit-artifacts.ts";
import { artifactContract } from "./flowkit-artifacts.ts";

artifactContract({ name: "artifacts in our own store", open: () => openOwnArtifacts() });
