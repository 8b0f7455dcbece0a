import { AuditReader } from '#audit/audit-reader.ts'
import { certificateIn, type SecretSource } from '#config/context/secrets.ts'
import { type EventMeter, EventStreams, noMeter } from '#features/scim/events/event-streams.ts'
import { Journals } from '#features/scim/journal/journals.ts'
import { ClientTokens } from '#features/scim/tokens/client-tokens.ts'
import type { ApiServerMeter } from '#features/sts/service/api-server-breaker.ts'
import { createIssuingState } from '#features/sts/service/token-issuing.ts'
import type { Clock } from '#kernel/clock.ts'
import type { ErrorCode } from '#kernel/errors.ts'
import { processName } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { createKeySource } from '#keys/key-source.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { loadSecretKeys } from '#keys/secret-keys.ts'
import type { TokenKeyRings } from '#keys/token-key-rings.ts'
import { LoginAudit, type LoginMeter, noLoginMeter } from '#requests/login/login-audit.ts'
import { SessionChanges } from '#requests/sessions/session-changes.ts'
import { Sessions } from '#requests/sessions/sessions.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { PeopleMetrics } from '#server/metrics/metrics.ts'
import type { WorkflowMetrics } from '#server/metrics/workflow-metrics.ts'
import { RunChanges } from '#workflows/runs/run-changes.ts'
import { defaultLimits } from '#workflows/runs/run-worker.ts'
import { type CrashHook, noCrash, noStepObserver, subjectQueue } from '#workflows/steps/workflow-services.ts'
import type { RuntimeServices } from './runtime.ts'
import type { Storage } from './stores.ts'
import { createTokenKeys, type TokenKeyPlaces } from './token-keys.ts'

interface ServiceParts {
  readonly storage: Storage
  readonly configFolder: string
  readonly dataFolder: string
  /** Where keys outside of the configuration folder are looked up. */
  readonly secrets?: SecretSource
  readonly clock: Clock
  readonly log: Logger
  /** Present if this process delivers events. */
  readonly eventMeter?: EventMeter
  /** Present if this process issues tokens for workloads. */
  readonly countExchange?: RuntimeServices['countExchange']
  readonly apiServers?: ApiServerMeter
  /** Present if this process executes stored runs and jobs. */
  readonly workflowMetrics?: WorkflowMetrics
  readonly loginMeter?: LoginMeter
  readonly peopleMetrics?: PeopleMetrics
  /** The lease of runs, if it differs from the default. */
  readonly leaseMillis?: number
  readonly crash?: CrashHook | undefined
  readonly measureCustody?: TokenKeyPlaces['measureCustody']
  readonly renewalTimes?: RuntimeServices['renewalTimes'] | undefined
  readonly loopbackOnly?: boolean
  readonly targetMeter?: RuntimeServices['targetMeter']
  readonly installation?: RuntimeServices['installation']
  /** The name of this process; a new one if absent. */
  readonly replica?: string
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** What every configuration of this process shares. */
export function createServices(parts: ServiceParts): RuntimeServices & { readonly tokenKeys: TokenKeyRings } {
  const { storage, clock, log } = parts
  const replica = parts.replica ?? processName()
  const keys = keySource(parts)
  return {
    log,
    clock,
    keys,
    installation: parts.installation,
    renewalTimes: parts.renewalTimes,
    loopbackOnly: parts.loopbackOnly,
    targetMeter: parts.targetMeter,
    ...sharedStores(storage),
    reconciliations: { store: storage.reconciliations, links: storage.accountLinks, folder: parts.dataFolder },
    ...sealedStores(parts),
    ...tokenServices(parts),
    ...workflowServices(parts, replica),
    loginAudit: new LoginAudit({ audit: storage.audit, rateLimits: storage.rateLimits, clock, log }),
    loginMeter: parts.loginMeter ?? noLoginMeter,
    auditReader: new AuditReader({ replica, audit: storage.audit, clock, log }),
    runChanges: new RunChanges({ store: storage.runs, log }),
    sessionChanges: new SessionChanges({ store: storage.sessions, clock, log }),
    journals: new Journals(storage.journal, log),
    clientTokens: new ClientTokens(storage.clientTokens, clock, log),
    events: new EventStreams({
      store: storage.events,
      keys,
      clock,
      log,
      meter: parts.eventMeter ?? noMeter,
      delivers: parts.eventMeter !== undefined,
    }),
  }
}

const keySource = ({ configFolder, dataFolder, environment, secrets }: ServiceParts): KeySource =>
  createKeySource({
    configuration: configFolder,
    data: dataFolder,
    environment,
    certificate: (name) => (secrets === undefined ? undefined : certificateIn(secrets, name)),
  })

const sharedStores = (storage: Storage) => ({
  logins: storage.logins,
  loginFailures: storage.loginFailures,
  rateLimits: storage.rateLimits,
  passwordChanges: storage.passwordChanges,
  audit: storage.audit,
  runs: storage.runs,
  idempotency: storage.idempotency,
  approvals: storage.approvals,
  delegations: storage.delegations,
  mails: storage.mails,
  grants: storage.grants,
  sessionStore: storage.sessions,
  portal: storage.portal,
  notifications: storage.notifications,
  statistics: storage.statistics,
  scimClients: { tokens: storage.clientTokens, tenants: storage.tenants },
  openUserDirectory: async (options: Parameters<Storage['userDirectory']>[0]) => storage.userDirectory(options),
})

/** Stores whose secrets are sealed, each for its own purpose. */
function sealedStores({ storage, clock, environment, dataFolder, peopleMetrics: people }: ServiceParts) {
  const sealingKeys = () => loadSecretKeys({ environment, dataFolder })
  const sealed = (what: string, damaged: ErrorCode = 'INTERNAL') => new SecretBox(sealingKeys, { what, damaged })
  return {
    secrets: new SecretBox(sealingKeys),
    sessions: new Sessions(storage.sessions, clock, sealed('session')),
    loginSecrets: sealed('login'),
    scriptSecrets: sealed('script', 'BAD_REQUEST'),
    reports: { store: storage.reports, secrets: sealed('report', 'NOT_FOUND'), meter: people?.report },
    issuer: { store: storage.issuer, secrets: sealed('issuer record'), meter: people?.issuer },
    secondFactors: { store: storage.secondFactors, secrets: sealed('second factor') },
    registrations: { store: storage.registrations, secrets: sealed('registration'), meter: people?.registration },
  }
}

function tokenServices(parts: ServiceParts) {
  const { storage, secrets, clock, log } = parts
  return {
    tokenKeys: createTokenKeys({ ...parts, secrets, store: storage.keys, audit: storage.audit }),
    issuing: createIssuingState(clock, storage.rateLimits, { log, meter: parts.apiServers }),
    countExchange: parts.countExchange,
    // As a gateway does, unlike a command.
    keepsGrants: parts.countExchange !== undefined,
  }
}

function workflowServices({ storage, workflowMetrics, leaseMillis, crash }: ServiceParts, worker: string) {
  return {
    subjects: subjectQueue(),
    leaseMillis: leaseMillis ?? defaultLimits.leaseMillis,
    observer: workflowMetrics?.observer ?? noStepObserver,
    crash: crash ?? noCrash,
    ...(workflowMetrics === undefined ? {} : { jobs: { store: storage.jobRuns, worker, meter: workflowMetrics.jobs } }),
  }
}
