import fileSink from '#adapters/audit-sinks/file/file.ts'
import httpsSink from '#adapters/audit-sinks/https/https.ts'
import syslogSink from '#adapters/audit-sinks/syslog/syslog.ts'
import acknowledge from '#adapters/auth-mechanisms/acknowledge/acknowledge.ts'
import addPortalRoles from '#adapters/auth-mechanisms/add-portal-roles/add-portal-roles.ts'
import anonymous from '#adapters/auth-mechanisms/anonymous/anonymous.ts'
import authorization from '#adapters/auth-mechanisms/authorization/authorization.ts'
import basicAuth from '#adapters/auth-mechanisms/basic-auth/basic-auth.ts'
import bearerToken from '#adapters/auth-mechanisms/bearer-token/bearer-token.ts'
import formLogin from '#adapters/auth-mechanisms/form-login/form-login.ts'
import github from '#adapters/auth-mechanisms/github/github.ts'
import includeChain from '#adapters/auth-mechanisms/include-chain/include-chain.ts'
import javaScriptAuth from '#adapters/auth-mechanisms/javascript-auth/javascript-auth.ts'
import jitProvision from '#adapters/auth-mechanisms/jit-provision/jit-provision.ts'
import loadLastUpdated from '#adapters/auth-mechanisms/load-last-updated/load-last-updated.ts'
import logUserAgent from '#adapters/auth-mechanisms/log-user-agent/log-user-agent.ts'
import loginService from '#adapters/auth-mechanisms/login-service/login-service.ts'
import mappingMechanism from '#adapters/auth-mechanisms/mapping/mapping.ts'
import oauth2Jwt from '#adapters/auth-mechanisms/oauth2-jwt/oauth2-jwt.ts'
import oauth2K8sServiceAccount from '#adapters/auth-mechanisms/oauth2-k8s-service-account/oauth2-k8s-service-account.ts'
import openIdConnect from '#adapters/auth-mechanisms/openid-connect/openid-connect.ts'
import pluginMechanism from '#adapters/auth-mechanisms/plugin/plugin.ts'
import serviceAccount2Claims from '#adapters/auth-mechanisms/service-account-2-claims/service-account-2-claims.ts'
import alwaysFail from '#adapters/authorizations/always-fail/always-fail.ts'
import gitHubTeams from '#adapters/authorizations/github-teams/github-teams.ts'
import javaScriptAuthorization from '#adapters/authorizations/javascript-authorization/javascript-authorization.ts'
import manager from '#adapters/authorizations/manager/manager.ts'
import rbacBinding from '#adapters/authorizations/rbac-binding/rbac-binding.ts'
import userHasSession from '#adapters/authorizations/user-has-session/user-has-session.ts'
import databaseInsert from '#adapters/directory-inserts/database/database.ts'
import ldapInsert from '#adapters/directory-inserts/ldap/ldap.ts'
import targetInsert from '#adapters/directory-inserts/target/target.ts'
import directoryDynamicWorkflow from '#adapters/dynamic-workflows/directory/directory.ts'
import javaScriptDynamicWorkflow from '#adapters/dynamic-workflows/javascript/javascript.ts'
import {
  kubernetesObjects,
  listClusterApproverGroups,
  listClusters,
} from '#adapters/dynamic-workflows/kubernetes/kubernetes.ts'
import sqlDynamicWorkflow from '#adapters/dynamic-workflows/sql/sql.ts'
import authorize from '#adapters/filters/authorize/authorize.ts'
import checkSession from '#adapters/filters/check-session/check-session.ts'
import clusterMetadata from '#adapters/filters/cluster-metadata/cluster-metadata.ts'
import completeLogin from '#adapters/filters/complete-login/complete-login.ts'
import developmentIssuer from '#adapters/filters/development-issuer/development-issuer.ts'
import endSessions from '#adapters/filters/end-sessions/end-sessions.ts'
import executeWorkflow from '#adapters/filters/execute-workflow/execute-workflow.ts'
import groupMetadata from '#adapters/filters/group-metadata/group-metadata.ts'
import javaScriptFilter from '#adapters/filters/javascript-filter/javascript-filter.ts'
import loginTest from '#adapters/filters/login-test/login-test.ts'
import metrics from '#adapters/filters/metrics/metrics.ts'
import noCache from '#adapters/filters/no-cache/no-cache.ts'
import { hideCookie, mapUriRoot, syncTlsKeys, xForward } from '#adapters/filters/pass-through/pass-through.ts'
import pluginFilter from '#adapters/filters/plugin/plugin.ts'
import stopProcessing from '#adapters/filters/stop-processing/stop-processing.ts'
import {
  anonAz,
  clusterGroups2Attribute,
  dnBase2Attribute,
  group2Attribute,
  groups2Attribute,
} from '#adapters/filters/subject-attributes/subject-attributes.ts'
import userToJson from '#adapters/filters/user-to-json/user-to-json.ts'
import javaScriptJob from '#adapters/jobs/javascript-job/javascript-job.ts'
import clusterGroups from '#adapters/mappers/cluster-groups/cluster-groups.ts'
import compositeNoReturn from '#adapters/mappers/composite-no-return/composite-no-return.ts'
import defaultEmail from '#adapters/mappers/default-email/default-email.ts'
import generateGroups from '#adapters/mappers/generate-groups/generate-groups.ts'
import javaScriptMapping from '#adapters/mappers/javascript-mapping/javascript-mapping.ts'
import pluginMapper from '#adapters/mappers/javascript-mapping/plugin-mapper.ts'
import jsonPathMapping from '#adapters/mappers/json-path-mapping/json-path-mapping.ts'
import uuidGenerator from '#adapters/mappers/uuid-generator/uuid-generator.ts'
import noNotifier from '#adapters/notifiers/none/none.ts'
import smtp from '#adapters/notifiers/smtp/smtp.ts'
import webhookNotifier from '#adapters/notifiers/webhook/webhook.ts'
import argoCd from '#adapters/targets/argocd/argocd.ts'
import databaseTarget from '#adapters/targets/database/database.ts'
import kubernetes, { ownCluster } from '#adapters/targets/kubernetes/kubernetes.ts'
import kubernetesRoleBindings from '#adapters/targets/kubernetes-role-bindings/kubernetes-role-bindings.ts'
import kubernetesUsers from '#adapters/targets/kubernetes-users/kubernetes-users.ts'
import { activeDirectory, ldap as ldapTarget } from '#adapters/targets/ldap/ldap.ts'
import pluginTarget from '#adapters/targets/plugin/plugin.ts'
import remoteGateway from '#adapters/targets/remote-gateway/remote-gateway.ts'
import scim from '#adapters/targets/scim/scim.ts'
import sqlTarget from '#adapters/targets/sql/sql.ts'
import webhook from '#adapters/targets/webhook/webhook.ts'
import databaseValueSource from '#adapters/value-sources/database/database.ts'
import directoryValueSource from '#adapters/value-sources/directory/directory.ts'
import empty from '#adapters/value-sources/empty/empty.ts'
import javaScript from '#adapters/value-sources/javascript/javascript.ts'
import kubernetesClusters from '#adapters/value-sources/kubernetes-clusters/kubernetes-clusters.ts'
import { deleteUser, extendAccess, revokeAccess } from '#adapters/workflow-tasks/access/access.ts'
import approval from '#adapters/workflow-tasks/approval/approval.ts'
import {
  addAttribute,
  addTimestampToUser,
  clearPasswordResets,
  copyFromUserToRequest,
  environmentToRequest,
  genUuidAttribute,
  printUserInfo,
} from '#adapters/workflow-tasks/attributes/attributes.ts'
import callRemoteWorkflow from '#adapters/workflow-tasks/calls/call-remote-workflow.ts'
import { asyncCallWorkflow, callWorkflow, customTask } from '#adapters/workflow-tasks/calls/calls.ts'
import { ifAttrExists, ifAttrHasValue, ifNotUserExists } from '#adapters/workflow-tasks/conditions/conditions.ts'
import {
  copyGroupMembers,
  deleteGroupMembers,
  doesGroupExist,
} from '#adapters/workflow-tasks/group-members/group-members.ts'
import {
  addGroupToStore,
  createGroups,
  createUserGroups,
  deleteGroup,
  nestGroup,
  updateGroup,
} from '#adapters/workflow-tasks/groups/groups.ts'
import javaScriptTask from '#adapters/workflow-tasks/javascript-task/javascript-task.ts'
import { addToRbac, createGitRepository } from '#adapters/workflow-tasks/kubernetes/argocd.ts'
import {
  checkApiExists,
  checkForGit,
  cleanLabels,
  loadConfigMap,
  pushToGit,
} from '#adapters/workflow-tasks/kubernetes/kubernetes-lookups.ts'
import {
  createK8sObject,
  deleteK8sObject,
  patchK8sObject,
} from '#adapters/workflow-tasks/kubernetes/kubernetes-objects.ts'
import { waitForObjectCreation, waitForStatus } from '#adapters/workflow-tasks/kubernetes/kubernetes-waits.ts'
import { addGroupToRole, createProject } from '#adapters/workflow-tasks/kubernetes/openshift.ts'
import {
  loadAttributes,
  loadAttributesFromTarget,
  loadGroups,
  loadGroupsFromTarget,
  resync,
} from '#adapters/workflow-tasks/load-user/load-user.ts'
import mapping from '#adapters/workflow-tasks/mapping/mapping.ts'
import {
  addGroup,
  attributeToGroups,
  clearGroups,
  filterGroups,
  keepTargetGroups,
  mapAttributeToGroups,
  mapGroups,
  mergeGitHubGroups,
} from '#adapters/workflow-tasks/memberships/memberships.ts'
import notifyUser from '#adapters/workflow-tasks/notify-user/notify-user.ts'
import provision from '#adapters/workflow-tasks/provision/provision.ts'
import type { Catalog } from '#config/configuration/catalog.ts'
import account from '#features/account/api/account.ts'
import passkey from '#features/account/mechanisms/passkey.ts'
import totp from '#features/account/mechanisms/totp.ts'
import callWorkflowFilter from '#features/call-workflow/call-workflow.ts'
import workflowAdmin from '#features/call-workflow/workflow-admin.ts'
import generateOidcTokens from '#features/issuer/filter/generate-oidc-tokens.ts'
import issuer from '#features/issuer/filter/issuer.ts'
import mailPasswordLink from '#features/passwords/mail-password-link.ts'
import ownPassword from '#features/passwords/own-password.ts'
import passwords from '#features/passwords/reset-filter.ts'
import approvalLink from '#features/portal/approval-link/approval-link.ts'
import main from '#features/portal/main/main.ts'
import operators from '#features/portal/operators/operators.ts'
import portal from '#features/portal/site/portal-site.ts'
import tokenApi from '#features/portal/token-page/token-api.ts'
import register from '#features/registration/register.ts'
import eventKeys from '#features/scim/events/event-keys.ts'
import eventPoll from '#features/scim/events/event-poll.ts'
import scimGateway from '#features/scim/gateway/scim-gateway.ts'
import scimJournal from '#features/scim/journal/journal-filter.ts'
import scimToken from '#features/scim/tokens/scim-token.ts'
import stsDocuments from '#features/sts/filters/documents.ts'
import stsToken from '#features/sts/filters/token.ts'
import stsInjector from '#features/sts/injector/injector.ts'
import { createRegistry } from '#kernel/registry.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'
import cleanUp from '#workflows/jobs/clean-up.ts'
import expireAccess from '#workflows/jobs/expire-access.ts'
import mailDigest from '#workflows/jobs/mail-digest.ts'
import mailOutcomes from '#workflows/jobs/mail-outcomes.ts'
import remindApprovers from '#workflows/jobs/remind-approvers.ts'

/** To add a module, add one import above and one line to its registry. */

export const authMechanisms = createRegistry('authentication mechanism', [
  acknowledge,
  addPortalRoles,
  anonymous,
  authorization,
  basicAuth,
  bearerToken,
  formLogin,
  generateOidcTokens,
  github,
  includeChain,
  jitProvision,
  loadLastUpdated,
  loginService,
  logUserAgent,
  mappingMechanism,
  oauth2Jwt,
  oauth2K8sServiceAccount,
  openIdConnect,
  passkey,
  javaScriptAuth,
  pluginMechanism,
  scimToken,
  serviceAccount2Claims,
  totp,
])

export const filters = createRegistry('filter', [
  account,
  anonAz,
  approvalLink,
  authorize,
  callWorkflowFilter,
  checkSession,
  clusterMetadata,
  clusterGroups2Attribute,
  completeLogin,
  developmentIssuer,
  dnBase2Attribute,
  endSessions,
  eventKeys,
  eventPoll,
  executeWorkflow,
  group2Attribute,
  groupMetadata,
  groups2Attribute,
  hideCookie,
  issuer,
  loginTest,
  main,
  mapUriRoot,
  metrics,
  noCache,
  operators,
  ownPassword,
  passwords,
  javaScriptFilter,
  pluginFilter,
  portal,
  register,
  scimGateway,
  scimJournal,
  stopProcessing,
  stsDocuments,
  stsInjector,
  stsToken,
  syncTlsKeys,
  tokenApi,
  userToJson,
  workflowAdmin,
  xForward,
])

export const targets = createRegistry('target', [
  argoCd,
  databaseTarget,
  kubernetes,
  kubernetesUsers,
  kubernetesRoleBindings,
  ldapTarget,
  activeDirectory,
  pluginTarget,
  remoteGateway,
  scim,
  sqlTarget,
  webhook,
])

export const valueSources = createRegistry('value source', [
  databaseValueSource,
  directoryValueSource,
  empty,
  javaScript,
  kubernetesClusters,
])

export const customTasks = createRegistry('custom task', [
  addGroupToRole,
  addGroupToStore,
  addTimestampToUser,
  addToRbac,
  asyncCallWorkflow,
  attributeToGroups,
  callRemoteWorkflow,
  checkApiExists,
  checkForGit,
  cleanLabels,
  clearGroups,
  clearPasswordResets,
  copyFromUserToRequest,
  copyGroupMembers,
  createGitRepository,
  createGroups,
  createK8sObject,
  createProject,
  createUserGroups,
  deleteGroup,
  deleteGroupMembers,
  deleteK8sObject,
  doesGroupExist,
  environmentToRequest,
  extendAccess,
  filterGroups,
  genUuidAttribute,
  javaScriptTask,
  keepTargetGroups,
  loadAttributes,
  loadAttributesFromTarget,
  loadConfigMap,
  loadGroups,
  loadGroupsFromTarget,
  mailPasswordLink,
  mapAttributeToGroups,
  mapGroups,
  mergeGitHubGroups,
  nestGroup,
  patchK8sObject,
  printUserInfo,
  pushToGit,
  revokeAccess,
  updateGroup,
  waitForObjectCreation,
  waitForStatus,
])

/** By `taskType`. */
export const tasks: ReadonlyMap<string, TaskModule> = new Map(
  [
    addAttribute,
    addGroup,
    approval,
    callWorkflow,
    customTask,
    deleteUser,
    ifAttrExists,
    ifAttrHasValue,
    ifNotUserExists,
    mapping,
    notifyUser,
    provision,
    resync,
  ].map((module) => [module.taskType, module]),
)

const mappers = createRegistry('mapper', [
  clusterGroups,
  compositeNoReturn,
  defaultEmail,
  generateGroups,
  javaScriptMapping,
  jsonPathMapping,
  pluginMapper,
  uuidGenerator,
])

const jobs = createRegistry('job', [cleanUp, expireAccess, javaScriptJob, mailDigest, mailOutcomes, remindApprovers])

export const directoryInserts = createRegistry('directory insert', [databaseInsert, ldapInsert, targetInsert])

export const auditSinks = createRegistry('audit sink', [fileSink, httpsSink, syslogSink])

const notifiers = createRegistry('notifier', [noNotifier, smtp, webhookNotifier])

const dynamicWorkflows = createRegistry('dynamic workflow', [
  directoryDynamicWorkflow,
  javaScriptDynamicWorkflow,
  kubernetesObjects,
  listClusterApproverGroups,
  listClusters,
  sqlDynamicWorkflow,
])

const authorizations = createRegistry('authorization', [
  alwaysFail,
  gitHubTeams,
  javaScriptAuthorization,
  manager,
  rbacBinding,
  userHasSession,
])

/** Everything this build of Gatehouse can be configured with. */
export const catalog: Catalog = {
  auditSinks,
  authMechanisms,
  authorizations,
  builtInTargets: new Map([['k8s', ownCluster]]),
  customTasks,
  directoryInserts,
  dynamicWorkflows,
  filters,
  jobs,
  mappers,
  notifiers,
  targets,
  tasks,
  valueSources,
}
