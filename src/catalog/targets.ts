import { createRegistry } from '#kernel/registry.ts'
import database from '#modules/targets/database/database.ts'
import kubernetes from '#modules/targets/kubernetes/kubernetes.ts'
import plugin from '#modules/targets/plugin/plugin.ts'

/** Add a target: one import above, one line below. */
export const targets = createRegistry('target', [database, kubernetes, plugin])
