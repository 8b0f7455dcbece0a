import { isForbiddenKey } from '#kernel/json.ts'

const engineKey = /^(?:approval[._]|unison[._](?!sendToSubject$)|workflow|tremolo_user_id$|com\.tremolosecurity\.)/i

/**
 * True for request keys that steer the engine (approvals, execution, identity of the run). Nothing that comes from a
 * caller may become one, so they are refused wherever a key is named by input or by a task. `unison.sendToSubject`, which
 * only says who is mailed, is a key like any other.
 */
export const isEngineKey = (key: string): boolean => engineKey.test(key) || isForbiddenKey(key)
