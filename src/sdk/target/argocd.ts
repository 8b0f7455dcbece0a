import type { Target, TargetRequest } from '#sdk/target/target.ts'

/** A repository that Argo CD reads. */
export interface ArgoCdRepository {
  readonly type: string
  readonly name: string
  readonly url: string
  /** Never logged. */
  readonly sshPrivateKey: string
}

/** Optional: the target is an Argo CD, by its API. Throws TARGET_UNREACHABLE and TARGET_FAILED. */
export interface ArgoCd extends Target {
  hasRepository(url: string, request: TargetRequest): Promise<boolean>
  /** Registers the repository, or gives the one with this address the new values. */
  putRepository(repository: ArgoCdRepository, request: TargetRequest): Promise<void>
}

/** Whether the target is an Argo CD. */
export const isArgoCd = (target: Target): target is ArgoCd => 'putRepository' in target
