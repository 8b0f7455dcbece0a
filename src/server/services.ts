import { certificateIn, type SecretSource } from '#config/secrets.ts'
import { createKeySource } from '#engine/keys/key-source.ts'
import type { RuntimeServices } from '#engine/runtime.ts'
import { Sessions } from '#engine/session/sessions.ts'
import { SubjectQueue } from '#engine/workflow/subject-queue.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Storage } from '#storage/open.ts'

export interface ServiceParts {
  readonly storage: Storage
  readonly configFolder: string
  readonly dataFolder: string
  /** Where keys are looked for that are not in the configuration folder. */
  readonly secrets?: SecretSource
  readonly clock: Clock
  readonly log: Logger
}

/** What every configuration of this process shares. */
export function createServices(parts: ServiceParts): RuntimeServices {
  const { storage, configFolder, dataFolder, secrets, clock, log } = parts
  return {
    log,
    clock,
    keys: createKeySource({
      configuration: configFolder,
      data: dataFolder,
      certificate: (name) => (secrets === undefined ? undefined : certificateIn(secrets, name)),
    }),
    sessions: new Sessions(storage.sessions, clock),
    audit: storage.audit,
    subjects: new SubjectQueue(),
    openUserDirectory: async (options) => storage.userDirectory(options),
  }
}
