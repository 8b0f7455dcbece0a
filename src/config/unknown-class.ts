import type { Named, Registry } from '#kernel/registry.ts'
import { suggestion } from '#kernel/suggest.ts'

/** Class names of existing YAML; the catalogue decides which of them exist. */
const knownClasses: Readonly<Record<string, readonly string[]>> = {
  '': [
    'scalejs.ws.ScaleMain',
    'scalejs.register.ws.ScaleRegister',
    'scalejs.token.ws.ScaleToken',
    'scalejs.ws.ScaleJSOperator',
    'prelude.filters.StopProcessing',
    'unison.proxy.auth.openidconnect.OpenIDConnectAuthMech',
    'provisioning.auth.JITAuthMech',
    'unison.openshiftv3.OpenShiftTarget',
    'provisioning.providers.K8sCrdUserProvider',
    'provisioning.targets.RbacBindingsTarget',
    'unison.okta.provisioning.OktaTarget',
    'unison.freeipa.FreeIPATarget',
    'mongodb.unison.MongoDBTarget',
    'argocd.targets.ArgoCDTarget',
    'customaz.JavaScriptAz',
    'provisioning.az.ManagerAuthorization',
    'az.RBACBindingAuthorization',
    'mapping.JavaScriptMapping',
    'mapping.DefaultEmail',
  ],
  'scalejs.register.dynamicSource.': [
    'LoadFromLDAP',
    'LoadFromDatabaseTarget',
    'EntraIDSource',
    'LoadTeamsFromGitHub',
    'EmptySource',
    'JavaScriptSource',
  ],
  'proxy.filters.': [
    'CallWorkflow',
    'ExecuteWorkflow',
    'JavaScriptFilter',
    'scim.Scim',
    'CheckSession',
    'AzFilter',
    'SetNoCacheHeaders',
    'XForward',
    'HideCookie',
    'MapUriRoot',
  ],
  'proxy.auth.': [
    'oauth2.OAuth2JWT',
    'OAuth2K8sServiceAccount',
    'ServiceAccount2Claims',
    'FormLoginAuthMech',
    'AnonAuth',
    'IncludeChain',
    'AuthorizationAuthMech',
    'JavaScriptAuth',
    'GenerateOIDCTokens',
    'FullMappingAuthMech',
    'MappingAuthmech',
    'LoginService',
    'SAML2Auth',
    'PasswordReset',
  ],
  'proxy.az.': ['UserHasSessionAz', 'AlwaysFail'],
  'mappers.': ['JsonPathMapping', 'CompositeNoReturn', 'GenerateGroups', 'UUIDGenerator'],
  'provisioning.core.providers.': [
    'JavaScriptTarget',
    'BasicDB',
    'LDAPProvider',
    'ADProvider',
    'AzureADProvider',
    'GitHubProvider',
    'MatterMostProvider',
    'NoOpProvider',
    'TremoloTarget',
  ],
  'provisioning.customTasks.': [
    'JavaScriptTask',
    'PrintUserInfo',
    'LoadAttributes',
    'LoadAttributesFromTarget',
    'LoadGroups',
    'LoadGroupsFromTarget',
    'FilterGroups',
    'MapGroups',
    'MapJitGroups',
    'ClearGroups',
    'Attribute2Groups',
    'CopyFromUserToRequest',
    'AddGroupToStore',
    'RemoveGroupFromStore',
    'DoesGroupExist',
    'CopyGroupMembers',
    'DeleteGroupMembers',
    'AsyncCallWorkflow',
    'CallRemoteWorkflow',
    'SetPassword',
    'ClearPasswordResets',
    'CreateOTPKey',
    'GenUUIDAttribute',
    'AddTimestampToUser',
    'Env2Req',
    'JITIgnoreGroups',
    'JITBasicDBCreateGroups',
    'LoadAuditDBAttributes',
  ],
}

const known = new Set(
  Object.entries(knownClasses).flatMap(([prefix, names]) =>
    names.map((name) => `com.tremolosecurity.${prefix}${name}`),
  ),
)

/** Classes that Gatehouse replaces with something else, and with what. */
const otherwise = new Map([
  [
    'com.tremolosecurity.provisioning.scheduler.jobs.UpdateApprovalAz',
    'is not needed: the rules check the approver when a decision is made',
  ],
  [
    'com.tremolosecurity.provisioning.scheduler.jobs.AutoFail',
    'is not needed: the escalationPolicy of an approval defines what happens without a decision',
  ],
])

/** Why no module has that name: it is mistyped, is not needed, or comes with a later version. */
export function unknownClass(registry: Pick<Registry<Named>, 'unknown'>, name: string): string {
  const instead = otherwise.get(name)
  if (instead !== undefined) return `"${name}" ${instead}`
  return known.has(name) ? notYet(name) : registry.unknown(name)
}

export function unknownTaskType(name: string, taskTypes: Iterable<string>): string {
  return `no task type "${name}"${suggestion(name, taskTypes)}`
}

const notYet = (name: string): string => `"${name}" is known but not supported by this version`
