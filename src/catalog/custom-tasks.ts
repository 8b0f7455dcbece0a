import { createRegistry } from '#kernel/registry.ts'
import asyncCallWorkflow from '#modules/workflow-tasks/async-call-workflow/async-call-workflow.ts'
import attributeToGroups from '#modules/workflow-tasks/attribute-to-groups/attribute-to-groups.ts'
import clearGroups from '#modules/workflow-tasks/clear-groups/clear-groups.ts'
import copyFromUserToRequest from '#modules/workflow-tasks/copy-from-user-to-request/copy-from-user-to-request.ts'
import extendAccess from '#modules/workflow-tasks/extend-access/extend-access.ts'
import filterGroups from '#modules/workflow-tasks/filter-groups/filter-groups.ts'
import genUuidAttribute from '#modules/workflow-tasks/gen-uuid-attribute/gen-uuid-attribute.ts'
import addGroupToStore from '#modules/workflow-tasks/groups/add-group-to-store.ts'
import createGroup from '#modules/workflow-tasks/groups/create-group.ts'
import deleteGroup from '#modules/workflow-tasks/groups/delete-group.ts'
import nestGroup from '#modules/workflow-tasks/groups/nest-group.ts'
import updateGroup from '#modules/workflow-tasks/groups/update-group.ts'
import javaScriptTask from '#modules/workflow-tasks/javascript-task/javascript-task.ts'
import loadAttributes from '#modules/workflow-tasks/load-attributes/load-attributes.ts'
import loadAttributesFromTarget from '#modules/workflow-tasks/load-attributes-from-target/load-attributes-from-target.ts'
import loadGroups from '#modules/workflow-tasks/load-groups/load-groups.ts'
import loadGroupsFromTarget from '#modules/workflow-tasks/load-groups-from-target/load-groups-from-target.ts'
import mapGroups from '#modules/workflow-tasks/map-groups/map-groups.ts'
import printUserInfo from '#modules/workflow-tasks/print-user-info/print-user-info.ts'
import revokeAccess from '#modules/workflow-tasks/revoke-access/revoke-access.ts'

/** Add a custom task: one import above, one line below. */
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
