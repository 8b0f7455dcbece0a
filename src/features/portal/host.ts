import type { AuditReader } from '#audit/audit-reader.ts'
import type { ReconciliationConfig, UrlConfig } from '#config/configuration/configuration.ts'
import type { AccountHost } from '#features/account/host.ts'
import type { IssuerHost } from '#features/issuer/host.ts'
import type { ConfigurationAccess } from '#features/portal/access/configuration-access.ts'
import type { Portal } from '#features/portal/access/portal.ts'
import type { ServedProfile } from '#features/portal/access/profile-form.ts'
import type { SystemFacts } from '#features/portal/access/system-facts.ts'
import type { ComparedSystems } from '#features/reconciliation/read/systems.ts'
import type { ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import type { RegistrationHost } from '#features/registration/host.ts'
import type { RegistrationForm } from '#features/registration/service/offered-form.ts'
import type { Reports } from '#features/reports/report-endpoint.ts'
import type { ScimHost } from '#features/scim/host.ts'
import type { TenantStore } from '#features/scim/tenants/tenant-store.ts'
import type { ClientTokenStore } from '#features/scim/tokens/client-token-store.ts'
import type { StsHost } from '#features/sts/host.ts'
import type { TokenReport } from '#features/sts/service/token-report.ts'
import type { ListenToSessions } from '#requests/sessions/session-listener.ts'
import type { ServedApi } from '#sdk/filter/filter-api.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { WorkflowCatalog } from '#workflows/definitions/workflow-catalog.ts'
import type { OwnGrants } from '#workflows/grants/own-grants.ts'
import type { ListenToRuns } from '#workflows/runs/run-listener.ts'
import type { ReadTargets } from '#workflows/targets/target-status.ts'
import type { ReadStatistics } from './statistics/statistics-query.ts'

/** What the filters of the portal use beside what every filter may use. */
export interface PortalHost
  extends AccountHost,
    IssuerHost,
    RegistrationHost,
    StsHost,
    Pick<ScimHost, 'journals' | 'openUserDirectory'> {
  readonly runChanges: ListenToRuns
  readonly approvals: ApprovalDesk
  /** The workflows of the configuration, for administrators. */
  readonly workflowCatalog: WorkflowCatalog
  /** The request parameters that a workflow and those it calls accept; undefined for an unknown workflow. */
  workflowParameters(name: string): ReadonlySet<string> | undefined
  readonly grants: OwnGrants
  readonly scimClients: {
    readonly tokens: Pick<ClientTokenStore, 'list' | 'get' | 'add' | 'revokeById'>
    readonly tenants: Pick<TenantStore, 'list' | 'get' | 'add' | 'setDisabled' | 'remove'>
    /** Of the configuration, with those of the tenants. */
    readonly urls: readonly Pick<UrlConfig, 'hosts' | 'uri' | 'pattern'>[]
    /** Those that chains of the configuration name, without tenants. */
    readonly named: ReadonlySet<string>
  }
  readonly sessionChanges: ListenToSessions
  /** What a portal shows: orgs, links, reports, workflows. */
  readonly portal: Portal
  /** The address of the portal, without a slash at its end; absent if none is configured. */
  readonly portalUrl?: string | undefined
  /** The APIs of the configuration; none if absent. */
  readonly apis?: readonly ServedApi[]
  /** The registration forms of the configuration; none if absent. */
  readonly forms?: readonly RegistrationForm[]
  /** The profiles of the portals of the configuration; none if absent. */
  readonly profiles?: readonly ServedProfile[]
  /** Absent if the gateway serves no reports. */
  readonly reports?: Reports | undefined
  readonly readTargets: ReadTargets
  readonly readStatistics: ReadStatistics
  readonly audit: AuditReader
  readonly reconciliations: {
    readonly plans: ReconciliationPlans
    /** By name. */
    readonly configured: ReadonlyMap<string, ReconciliationConfig>
    /** Both systems of a configured one; undefined for others, and in commands. */
    systems(name: string, signal: AbortSignal): ComparedSystems | undefined
  }
  /** Absent in commands, which serve nothing. */
  readonly readSystem?: () => Promise<SystemFacts>
  /** Absent in commands. */
  readonly loaded?: ConfigurationAccess
  /** Absent in commands. */
  readonly tokenReport?: TokenReport
}
