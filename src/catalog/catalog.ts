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
import stsDocuments from '#features/sts/filters/documents.ts'
import stsToken from '#features/sts/filters/token.ts'
import stsInjector from '#features/sts/injector/injector.ts'
import { createRegistry } from '#kernel/registry.ts'
import fileSink from '#modules/audit-sinks/file/file.ts'
import httpsSink from '#modules/audit-sinks/https/https.ts'
import syslogSink from '#modules/audit-sinks/syslog/syslog.ts'
import acknowledge from '#modules/auth-mechanisms/acknowledge/acknowledge.ts'
import addPortalRoles from '#modules/auth-mechanisms/add-portal-roles/add-portal-roles.ts'
import anonymous from '#modules/auth-mechanisms/anonymous/anonymous.ts'
import authorization from '#modules/auth-mechanisms/authorization/authorization.ts'
import basicAuth from '#modules/auth-mechanisms/basic-auth/basic-auth.ts'
import bearerToken from '#modules/auth-mechanisms/bearer-token/bearer-token.ts'
import formLogin from '#modules/auth-mechanisms/form-login/form-login.ts'
import github from '#modules/auth-mechanisms/github/github.ts'
import includeChain from '#modules/auth-mechanisms/include-chain/include-chain.ts'
import javaScriptAuth from '#modules/auth-mechanisms/javascript-auth/javascript-auth.ts'
import jitProvision from '#modules/auth-mechanisms/jit-provision/jit-provision.ts'
import loadLastUpdated from '#modules/auth-mechanisms/load-last-updated/load-last-updated.ts'
import logUserAgent from '#modules/auth-mechanisms/log-user-agent/log-user-agent.ts'
import loginService from '#modules/auth-mechanisms/login-service/login-service.ts'
import mappingMechanism from '#modules/auth-mechanisms/mapping/mapping.ts'
import oauth2Jwt from '#modules/auth-mechanisms/oauth2-jwt/oauth2-jwt.ts'
import oauth2K8sServiceAccount from '#modules/auth-mechanisms/oauth2-k8s-service-account/oauth2-k8s-service-account.ts'
import openIdConnect from '#modules/auth-mechanisms/openid-connect/openid-connect.ts'
import pluginMechanism from '#modules/auth-mechanisms/plugin/plugin.ts'
import serviceAccount2Claims from '#modules/auth-mechanisms/service-account-2-claims/service-account-2-claims.ts'
import alwaysFail from '#modules/authorizations/always-fail/always-fail.ts'
import gitHubTeams from '#modules/authorizations/github-teams/github-teams.ts'
import javaScriptAuthorization from '#modules/authorizations/javascript-authorization/javascript-authorization.ts'
import manager from '#modules/authorizations/manager/manager.ts'
import rbacBinding from '#modules/authorizations/rbac-binding/rbac-binding.ts'
import userHasSession from '#modules/authorizations/user-has-session/user-has-session.ts'
import databaseInsert from '#modules/directory-inserts/database/database.ts'
import ldapInsert from '#modules/directory-inserts/ldap/ldap.ts'
import targetInsert from '#modules/directory-inserts/target/target.ts'
import directoryDynamicWorkflow from '#modules/dynamic-workflows/directory/directory.ts'
import javaScriptDynamicWorkflow from '#modules/dynamic-workflows/javascript/javascript.ts'
import {
  kubernetesObjects,
  listClusterApproverGroups,
  listClusters,
} from '#modules/dynamic-workflows/kubernetes/kubernetes.ts'
import sqlDynamicWorkflow from '#modules/dynamic-workflows/sql/sql.ts'
import authorize from '#modules/filters/authorize/authorize.ts'
import checkSession from '#modules/filters/check-session/check-session.ts'
import clusterMetadata from '#modules/filters/cluster-metadata/cluster-metadata.ts'
import completeLogin from '#modules/filters/complete-login/complete-login.ts'
import developmentIssuer from '#modules/filters/development-issuer/development-issuer.ts'
import endSessions from '#modules/filters/end-sessions/end-sessions.ts'
import executeWorkflow from '#modules/filters/execute-workflow/execute-workflow.ts'
import groupMetadata from '#modules/filters/group-metadata/group-metadata.ts'
import javaScriptFilter from '#modules/filters/javascript-filter/javascript-filter.ts'
import loginTest from '#modules/filters/login-test/login-test.ts'
import metrics from '#modules/filters/metrics/metrics.ts'
import noCache from '#modules/filters/no-cache/no-cache.ts'
import { hideCookie, mapUriRoot, syncTlsKeys, xForward } from '#modules/filters/pass-through/pass-through.ts'
import pluginFilter from '#modules/filters/plugin/plugin.ts'
import stopProcessing from '#modules/filters/stop-processing/stop-processing.ts'
import {
  anonAz,
  clusterGroups2Attribute,
  dnBase2Attribute,
  group2Attribute,
  groups2Attribute,
} from '#modules/filters/subject-attributes/subject-attributes.ts'
import userToJson from '#modules/filters/user-to-json/user-to-json.ts'
import javaScriptJob from '#modules/jobs/javascript-job/javascript-job.ts'
import clusterGroups from '#modules/mappers/cluster-groups/cluster-groups.ts'
import compositeNoReturn from '#modules/mappers/composite-no-return/composite-no-return.ts'
import defaultEmail from '#modules/mappers/default-email/default-email.ts'
import generateGroups from '#modules/mappers/generate-groups/generate-groups.ts'
import javaScriptMapping from '#modules/mappers/javascript-mapping/javascript-mapping.ts'
import pluginMapper from '#modules/mappers/javascript-mapping/plugin-mapper.ts'
import jsonPathMapping from '#modules/mappers/json-path-mapping/json-path-mapping.ts'
import uuidGenerator from '#modules/mappers/uuid-generator/uuid-generator.ts'
import noNotifier from '#modules/notifiers/none/none.ts'
import smtp from '#modules/notifiers/smtp/smtp.ts'
import webhookNotifier from '#modules/notifiers/webhook/webhook.ts'
import argoCd from '#modules/targets/argocd/argocd.ts'
import databaseTarget from '#modules/targets/database/database.ts'
import kubernetes, { ownCluster } from '#modules/targets/kubernetes/kubernetes.ts'
import kubernetesRoleBindings from '#modules/targets/kubernetes-role-bindings/kubernetes-role-bindings.ts'
import kubernetesUsers from '#modules/targets/kubernetes-users/kubernetes-users.ts'
import { activeDirectory, ldap as ldapTarget } from '#modules/targets/ldap/ldap.ts'
import pluginTarget from '#modules/targets/plugin/plugin.ts'
import remoteGateway from '#modules/targets/remote-gateway/remote-gateway.ts'
import scim from '#modules/targets/scim/scim.ts'
import sqlTarget from '#modules/targets/sql/sql.ts'
import webhook from '#modules/targets/webhook/webhook.ts'
import databaseValueSource from '#modules/value-sources/database/database.ts'
import directoryValueSource from '#modules/value-sources/directory/directory.ts'
import empty from '#modules/value-sources/empty/empty.ts'
import javaScript from '#modules/value-sources/javascript/javascript.ts'
import kubernetesClusters from '#modules/value-sources/kubernetes-clusters/kubernetes-clusters.ts'
import { deleteUser, extendAccess, revokeAccess } from '#modules/workflow-tasks/access/access.ts'
import approval from '#modules/workflow-tasks/approval/approval.ts'
import {
  addAttribute,
  addTimestampToUser,
  clearPasswordResets,
  copyFromUserToRequest,
  environmentToRequest,
  genUuidAttribute,
  printUserInfo,
} from '#modules/workflow-tasks/attributes/attributes.ts'
import callRemoteWorkflow from '#modules/workflow-tasks/calls/call-remote-workflow.ts'
import { asyncCallWorkflow, callWorkflow, customTask } from '#modules/workflow-tasks/calls/calls.ts'
import { ifAttrExists, ifAttrHasValue, ifNotUserExists } from '#modules/workflow-tasks/conditions/conditions.ts'
import {
  copyGroupMembers,
  deleteGroupMembers,
  doesGroupExist,
} from '#modules/workflow-tasks/group-members/group-members.ts'
import {
  addGroupToStore,
  createGroups,
  createUserGroups,
  deleteGroup,
  nestGroup,
  updateGroup,
} from '#modules/workflow-tasks/groups/groups.ts'
import javaScriptTask from '#modules/workflow-tasks/javascript-task/javascript-task.ts'
import { addToRbac, createGitRepository } from '#modules/workflow-tasks/kubernetes/argocd.ts'
import {
  checkApiExists,
  checkForGit,
  cleanLabels,
  loadConfigMap,
  pushToGit,
} from '#modules/workflow-tasks/kubernetes/kubernetes-lookups.ts'
import {
  createK8sObject,
  deleteK8sObject,
  patchK8sObject,
} from '#modules/workflow-tasks/kubernetes/kubernetes-objects.ts'
import { waitForObjectCreation, waitForStatus } from '#modules/workflow-tasks/kubernetes/kubernetes-waits.ts'
import { addGroupToRole, createProject } from '#modules/workflow-tasks/kubernetes/openshift.ts'
import {
  loadAttributes,
  loadAttributesFromTarget,
  loadGroups,
  loadGroupsFromTarget,
  resync,
} from '#modules/workflow-tasks/load-user/load-user.ts'
import mapping from '#modules/workflow-tasks/mapping/mapping.ts'
import {
  addGroup,
  attributeToGroups,
  clearGroups,
  filterGroups,
  keepTargetGroups,
  mapAttributeToGroups,
  mapGroups,
  mergeGitHubGroups,
} from '#modules/workflow-tasks/memberships/memberships.ts'
import notifyUser from '#modules/workflow-tasks/notify-user/notify-user.ts'
import provision from '#modules/workflow-tasks/provision/provision.ts'
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
