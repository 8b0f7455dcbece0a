import { authMechanisms } from '#catalog/auth-mechanisms.ts'
import { filters } from '#catalog/filters.ts'
import { targets } from '#catalog/targets.ts'
import { valueSources } from '#catalog/value-sources.ts'
import { createRegistry } from '#kernel/registry.ts'
import file from '#modules/audit-sinks/file/file.ts'
import https from '#modules/audit-sinks/https/https.ts'
import syslog from '#modules/audit-sinks/syslog/syslog.ts'
import alwaysFail from '#modules/authorizations/always-fail/always-fail.ts'
import javaScriptAuthorization from '#modules/authorizations/javascript-authorization/javascript-authorization.ts'
import database from '#modules/directory-inserts/database/database.ts'
import ldap from '#modules/directory-inserts/ldap/ldap.ts'
import target from '#modules/directory-inserts/target/target.ts'
import directory from '#modules/dynamic-workflows/directory/directory.ts'
import javascript from '#modules/dynamic-workflows/javascript/javascript.ts'
import sql from '#modules/dynamic-workflows/sql/sql.ts'
import cleanUp from '#modules/jobs/clean-up/clean-up.ts'
import expireAccess from '#modules/jobs/expire-access/expire-access.ts'
import javaScriptJob from '#modules/jobs/javascript-job/javascript-job.ts'
import remindApprovers from '#modules/jobs/remind-approvers/remind-approvers.ts'
import compositeNoReturn from '#modules/mappers/composite-no-return/composite-no-return.ts'
import defaultEmail from '#modules/mappers/default-email/default-email.ts'
import generateGroups from '#modules/mappers/generate-groups/generate-groups.ts'
import javaScriptMapping from '#modules/mappers/javascript-mapping/javascript-mapping.ts'
import pluginMapper from '#modules/mappers/javascript-mapping/plugin-mapper.ts'
import jsonPathMapping from '#modules/mappers/json-path-mapping/json-path-mapping.ts'
import uuidGenerator from '#modules/mappers/uuid-generator/uuid-generator.ts'
import none from '#modules/notifiers/none/none.ts'
import smtp from '#modules/notifiers/smtp/smtp.ts'
import addAttribute from '#modules/workflow-tasks/add-attribute/add-attribute.ts'
import addGroup from '#modules/workflow-tasks/add-group/add-group.ts'
import approval from '#modules/workflow-tasks/approval/approval.ts'
import asyncCallWorkflow from '#modules/workflow-tasks/async-call-workflow/async-call-workflow.ts'
import attributeToGroups from '#modules/workflow-tasks/attribute-to-groups/attribute-to-groups.ts'
import callWorkflow from '#modules/workflow-tasks/call-workflow/call-workflow.ts'
import clearGroups from '#modules/workflow-tasks/clear-groups/clear-groups.ts'
import copyFromUserToRequest from '#modules/workflow-tasks/copy-from-user-to-request/copy-from-user-to-request.ts'
import customTask from '#modules/workflow-tasks/custom-task/custom-task.ts'
import deleteUser from '#modules/workflow-tasks/delete/delete.ts'
import extendAccess from '#modules/workflow-tasks/extend-access/extend-access.ts'
import filterGroups from '#modules/workflow-tasks/filter-groups/filter-groups.ts'
import genUuidAttribute from '#modules/workflow-tasks/gen-uuid-attribute/gen-uuid-attribute.ts'
import addGroupToStore from '#modules/workflow-tasks/groups/add-group-to-store.ts'
import createGroup from '#modules/workflow-tasks/groups/create-group.ts'
import deleteGroup from '#modules/workflow-tasks/groups/delete-group.ts'
import nestGroup from '#modules/workflow-tasks/groups/nest-group.ts'
import updateGroup from '#modules/workflow-tasks/groups/update-group.ts'
import ifAttrExists from '#modules/workflow-tasks/if-attr-exists/if-attr-exists.ts'
import ifAttrHasValue from '#modules/workflow-tasks/if-attr-has-value/if-attr-has-value.ts'
import ifNotUserExists from '#modules/workflow-tasks/if-not-user-exists/if-not-user-exists.ts'
import javaScriptTask from '#modules/workflow-tasks/javascript-task/javascript-task.ts'
import loadAttributes from '#modules/workflow-tasks/load-attributes/load-attributes.ts'
import loadAttributesFromTarget from '#modules/workflow-tasks/load-attributes-from-target/load-attributes-from-target.ts'
import loadGroups from '#modules/workflow-tasks/load-groups/load-groups.ts'
import loadGroupsFromTarget from '#modules/workflow-tasks/load-groups-from-target/load-groups-from-target.ts'
import mapGroups from '#modules/workflow-tasks/map-groups/map-groups.ts'
import mapping from '#modules/workflow-tasks/mapping/mapping.ts'
import notifyUser from '#modules/workflow-tasks/notify-user/notify-user.ts'
import printUserInfo from '#modules/workflow-tasks/print-user-info/print-user-info.ts'
import provision from '#modules/workflow-tasks/provision/provision.ts'
import resync from '#modules/workflow-tasks/resync/resync.ts'
import revokeAccess from '#modules/workflow-tasks/revoke-access/revoke-access.ts'
import type { Catalog } from '#sdk/module/catalog.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'

/** To add a custom task, add one import above and one line below. */
export const customTasks = createRegistry('custom task', [
  addGroupToStore,
  asyncCallWorkflow,
  attributeToGroups,
  clearGroups,
  copyFromUserToRequest,
  createGroup,
  deleteGroup,
  extendAccess,
  filterGroups,
  genUuidAttribute,
  javaScriptTask,
  loadAttributes,
  loadAttributesFromTarget,
  loadGroups,
  loadGroupsFromTarget,
  mapGroups,
  nestGroup,
  printUserInfo,
  revokeAccess,
  updateGroup,
])

/** Every `taskType`. To add one, add one import above and one word below. */
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

/** To add a mapper, add one import above and one line below. */
const mappers = createRegistry('mapper', [
  compositeNoReturn,
  defaultEmail,
  generateGroups,
  javaScriptMapping,
  jsonPathMapping,
  pluginMapper,
  uuidGenerator,
])

/** To add a job, add one import above and one line below. */
const jobs = createRegistry('job', [cleanUp, expireAccess, javaScriptJob, remindApprovers])

/** To add a directory insert, add one import above and one line below. */
export const directoryInserts = createRegistry('directory insert', [database, ldap, target])

/** To add an audit sink, add one import above and one line below. */
export const auditSinks = createRegistry('audit sink', [file, https, syslog])

/** To add a notifier, add one import above and one line below. */
const notifiers = createRegistry('notifier', [none, smtp])

const dynamicWorkflows = createRegistry('dynamic workflow', [directory, javascript, sql])

/** To add an authorization, add one import above and one line below. */
const authorizations = createRegistry('authorization', [alwaysFail, javaScriptAuthorization])

/** Everything this build of Gatehouse can be configured with. */
export const catalog: Catalog = {
  auditSinks,
  authMechanisms,
  authorizations,
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
