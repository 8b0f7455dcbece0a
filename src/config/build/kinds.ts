import * as z from 'zod'
import { BuildContext, type LoadState } from '#config/context/build-context.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import { readRepaired } from '#config/context/schema-issues.ts'
import { applicationFrameSchema, applicationSchema, resultGroupSchema } from '#config/kinds/application.ts'
import { authenticationChainSchema, authenticationMechanismSchema } from '#config/kinds/authentication.ts'
import { envelopeSchema, metadataSchema } from '#config/kinds/envelope.ts'
import { auditAnchorSchema, auditSinkSchema, notifierSchema, ouJobSchema } from '#config/kinds/operations.ts'
import { orgSchema, portalUrlSchema, reportSchema } from '#config/kinds/portal.ts'
import {
  customAuthorizationSchema,
  directoryInsertSchema,
  groupMetaDataSchema,
  javaScriptMappingSchema,
  javaScriptSchema,
  namespaceGroupMetaDataSchema,
  targetSchema,
  workflowSchema,
} from '#config/kinds/provisioning.ts'
import { reconciliationSchema } from '#config/kinds/reconciliation.ts'
import { resourceTypeSchema } from '#config/kinds/resource-type.ts'
import { trustSchema } from '#config/kinds/trust.ts'
import type { Path } from '#kernel/issues.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import { buildApplication } from './application.ts'
import { buildChain, buildMechanism, buildResultGroup } from './authentication.ts'
import { buildDirectoryInsert } from './directory-insert.ts'
import {
  buildAuditAnchor,
  buildAuditSink,
  buildGroupMetaData,
  buildJavaScript,
  buildJavaScriptMapping,
  buildJob,
  buildNotifier,
  buildOrg,
  buildPortalUrl,
  buildReport,
} from './plain-kinds.ts'
import { buildCustomAuthorization, buildTarget, buildWorkflow } from './provisioning.ts'
import { buildReconciliation } from './reconciliation.ts'
import { buildResourceType } from './resource-type.ts'
import { buildTrust } from './trust.ts'

export interface Kind {
  readonly kind: string
  readonly versions: readonly string[]
  /** The kind of reference that other objects use. */
  readonly referredAs: ReferenceKind | undefined
  /** Texts that contain YAML. */
  readonly yamlTexts: readonly Path[]
  /** The source of the JSON schema, CRD and reference page. */
  readonly schema: z.ZodType
  /** Reads one document of this kind into the draft. */
  build(value: unknown, document: ConfigDocument, state: LoadState): void
}

interface KindOptions {
  /** The whole schema, if the builder reads parts of the spec separately. */
  readonly whole?: z.ZodType
  readonly versions?: readonly string[]
  readonly referredAs?: ReferenceKind
  readonly yamlTexts?: readonly Path[]
  /** False if no part of this version uses the object. */
  readonly served?: boolean
}

function kind<S extends z.ZodType>(
  name: string,
  spec: S,
  buildSpec: (spec: z.infer<S>, context: BuildContext) => void,
  options: KindOptions = {},
): Kind {
  return {
    kind: name,
    versions: options.versions ?? ['v1'],
    referredAs: options.referredAs,
    yamlTexts: options.yamlTexts ?? [],
    schema: envelopeSchema(metadataSchema, options.whole ?? spec),
    build: (value, document, state) => {
      const issues = state.issues.for(document)
      const part = <T>(schema: z.ZodType<T>, given: unknown, path: Path): T | undefined => {
        const read = readRepaired(schema, given, path, issues)
        for (const place of read.repaired) state.ignoreLater(document, place)
        return read.value
      }
      if (options.served === false) issues.warning(['kind'], `${name} is read but not served by this version`)
      const frame = part(frameSchema, value, [])
      const metadata = part(metadataSchema, frame?.metadata, ['metadata'])
      const written = part<z.infer<S>>(spec as z.ZodType<z.infer<S>>, frame?.spec, ['spec'])
      if (written === undefined) return
      buildSpec(written, new BuildContext(state, document, metadata?.name ?? unnamed, metadata?.namespace))
    },
  }
}

/** Metadata and spec are read separately, so that a problem in one does not hide those of the other. */
const frameSchema = envelopeSchema(z.unknown(), z.unknown())
/** Replaces a name that was reported as missing or wrong. */
export const unnamed = '(unnamed)'

/**
 * All kinds, in the order of building: a chain needs its mechanisms, an issuer its trusts, a gateway its types, a
 * reconciliation its gateway.
 */
export const kinds: readonly Kind[] = [
  kind('AuthenticationMechanism', authenticationMechanismSchema, buildMechanism, { referredAs: 'mechanism' }),
  kind('AuthenticationChain', authenticationChainSchema, buildChain, { referredAs: 'chain' }),
  kind('Target', targetSchema, buildTarget, { referredAs: 'target' }),
  kind('DirectoryInsert', directoryInsertSchema, buildDirectoryInsert),
  kind('Workflow', workflowSchema, buildWorkflow, {
    versions: ['v1', 'v2'],
    referredAs: 'workflow',
    yamlTexts: [['spec', 'tasks']],
  }),
  kind('ResourceType', resourceTypeSchema, buildResourceType, { referredAs: 'resource type' }),
  kind('ResultGroup', resultGroupSchema, buildResultGroup, { referredAs: 'result group' }),
  kind('CustomAuthorization', customAuthorizationSchema, buildCustomAuthorization, {
    referredAs: 'custom authorization',
  }),
  kind('JavaScript', javaScriptSchema, buildJavaScript, { referredAs: 'javascript mapping' }),
  kind('JavaScriptMapping', javaScriptMappingSchema, buildJavaScriptMapping, { referredAs: 'javascript mapping' }),
  kind('GroupMetaData', groupMetaDataSchema, buildGroupMetaData),
  kind('NamespaceGroupMetaData', namespaceGroupMetaDataSchema, buildGroupMetaData),
  kind('Trust', trustSchema, buildTrust, { referredAs: 'trust' }),
  kind('Application', applicationFrameSchema, buildApplication, {
    versions: ['v1', 'v2'],
    referredAs: 'application',
    whole: applicationSchema,
  }),
  kind('Org', orgSchema, buildOrg),
  kind('PortalUrl', portalUrlSchema, buildPortalUrl),
  kind('Report', reportSchema, buildReport),
  kind('OUJob', ouJobSchema, buildJob),
  kind('Notifier', notifierSchema, buildNotifier, { referredAs: 'notifier' }),
  kind('AuditSink', auditSinkSchema, buildAuditSink),
  kind('AuditAnchor', auditAnchorSchema, buildAuditAnchor),
  kind('Reconciliation', reconciliationSchema, buildReconciliation),
]

/** OpenUnison's group and ours; they are equivalent. */
export const groups = ['openunison.tremolo.io', 'gatehouse.dev'] as const

/** Why a common kind is not read. */
export const otherKinds: Readonly<Record<string, string>> = {
  Secret: 'put its values into the secrets folder or the environment',
  ConfigMap:
    'put its values into values.yaml or the environment; of the ConfigMap myvd, gatehouse import makes DirectoryInsert objects',
  List: 'put each of its items into a document of its own',
  EndSession: "it isn't configuration: filters.EndSessions reads such objects from a cluster",
  MessageListener:
    'there are no message queues here; run its script as a JavaScriptTask, in a workflow that an OUJob or the call-workflow API starts',
  OidcSession: 'sessions are not imported: users log in again',
  SecretVersion: 'versions of secrets are not kept: a changed secret is read again',
  TokenGrant:
    "it isn't configuration: teams create such objects in their namespaces, and sts.endpoints[].grants says which count",
  User: 'it is not configuration, but a user that a target stores',
}
