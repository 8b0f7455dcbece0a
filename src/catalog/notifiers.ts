import { createRegistry } from '#kernel/registry.ts'
import none from '#modules/notifiers/none/none.ts'
import smtp from '#modules/notifiers/smtp/smtp.ts'

/** Add a notifier: one import above, one line below. */
export const notifiers = createRegistry('notifier', [none, smtp])
