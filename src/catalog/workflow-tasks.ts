import addAttribute from '#modules/workflow-tasks/add-attribute/add-attribute.ts'
import addGroup from '#modules/workflow-tasks/add-group/add-group.ts'
import approval from '#modules/workflow-tasks/approval/approval.ts'
import callWorkflow from '#modules/workflow-tasks/call-workflow/call-workflow.ts'
import customTask from '#modules/workflow-tasks/custom-task/custom-task.ts'
import deleteUser from '#modules/workflow-tasks/delete/delete.ts'
import ifAttrExists from '#modules/workflow-tasks/if-attr-exists/if-attr-exists.ts'
import ifAttrHasValue from '#modules/workflow-tasks/if-attr-has-value/if-attr-has-value.ts'
import ifNotUserExists from '#modules/workflow-tasks/if-not-user-exists/if-not-user-exists.ts'
import mapping from '#modules/workflow-tasks/mapping/mapping.ts'
import notifyUser from '#modules/workflow-tasks/notify-user/notify-user.ts'
import provision from '#modules/workflow-tasks/provision/provision.ts'
import resync from '#modules/workflow-tasks/resync/resync.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'

/** Every `taskType`. A new one is one import above and one word below. */
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
