import { parseTrustedUrl } from '#kernel/address.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { list, parsed, parsedList, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { isRemoteGateway } from '#sdk/target/remote-gateway.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { copyUser, unusedPassword, userValues } from '#sdk/workflow/workflow-user.ts'

const executionKey = 'UNISON.EXEC.TYPE'

/** Calls a workflow of another gateway for the same user. */
export default defineCustomTask({
  className: 'tasks.CallRemoteWorkflow',
  aliases: ['com.tremolosecurity.provisioning.customTasks.CallRemoteWorkflow'],
  parameters: {
    workflowName: text({ about: 'The workflow to call at the other gateway.', required: true }),
    url: parsed('https address', parseTrustedUrl, {
      about: 'The URL of its call-workflow API: `https:`, or `http:` on this machine only.',
      required: true,
    }),
    lastMileKeyName: text({
      about:
        'The [targets.RemoteGateway](../targets/targets.RemoteGateway.md) target with the credential. OpenUnison names a key here.',
      required: true,
      reference: 'target',
    }),
    uidAttributeName: text({ about: 'The attribute that holds the login of the user there.', required: true }),
    attributeFromRequest: list({ about: 'A value of the request that is sent; may be repeated.' }),
    staticRequestValues: parsedList('name=value', readStaticValue, {
      about: `\`name=value\`: a value that is sent; may be repeated. \`${executionKey}=UNISON.EXEC.ASYNC\` does not wait for the run.`,
    }),
    lastMileUser: text({
      about: 'The account of the call, with `lastMileKey`, and the requester if the run has none.',
      fallback: 'system',
    }),
    lastMileUid: text({ about: 'The attribute that OpenUnison finds `lastMileUser` by.', fallback: 'uid' }),
    timeSkew: wholeNumber({
      about: 'How far the clocks may differ, in milliseconds; with `lastMileKey`.',
      fallback: 60_000,
      min: 1_000,
      max: 600_000,
    }),
  },
  prepare: (given, { issues, pathOf }) => {
    const { workflowName, url, lastMileKeyName: target, uidAttributeName, attributeFromRequest: names } = given
    for (const [i, name] of names.entries()) {
      if (isEngineKey(name)) issues.error(pathOf('attributeFromRequest', i), `"${name}" is a key of the engine`)
    }
    const bodyOf = (context: TaskContext): JsonObject => {
      const { user, request } = context
      const { requester } = context.run
      const password = unusedPassword(user)
      const uid = userValues(user, uidAttributeName)[0] ?? user.userID
      const attributes = [...user.attributes].map(([name, values]) => ({ name, values: [...values] }))
      const hasLogin = attributes.some(({ name }) => name.toLowerCase() === uidAttributeName.toLowerCase())
      const passed = names.flatMap((name) => {
        const value = request.get(name)
        return typeof value === 'string' ? [[name, value] as const] : []
      })
      return {
        name: workflowName,
        uidAttributeName,
        requestor: requester === '' ? given.lastMileUser : requester,
        ...(user.requestReason === undefined ? {} : { reason: user.requestReason }),
        requestParams: Object.fromEntries([...passed, ...given.staticRequestValues]),
        user: {
          uid,
          attributes: hasLogin ? attributes : [...attributes, { name: uidAttributeName, values: [uid] }],
          ...(user.keepGroups ? {} : { groups: [...user.groups] }),
          ...(password === undefined ? {} : { userPassword: password }),
        },
      }
    }
    return {
      // The other gateway gets every attribute.
      flow: { ...noFlow, mayRead: 'any', writes: true },
      create: ({ targets }) => ({
        async run(context) {
          const gateway = targets.get(target)
          if (url === undefined || !isRemoteGateway(gateway)) {
            throw new GatewayError('WORKFLOW_FAILED', `target "${target}" is not a targets.RemoteGateway`)
          }
          const account = { attribute: given.lastMileUid, user: given.lastMileUser }
          const call = { url, body: bodyOf(context), account, timeSkewMillis: given.timeSkew }
          const step = context.forTarget(target)
          const { status, run } = await gateway.callWorkflow(call, step)
          step.audit({ subject: 'attribute', action: 'add', attribute: 'workflow', value: workflowName })
          context.log.info('called a workflow of another gateway', { target, workflow: workflowName, status, run })
          return next
        },
        preview({ user, run, effects }) {
          const name = `${workflowName} (${url?.host ?? ''})`
          effects.start({ head: { workflow: name, requester: run.requester }, user: copyUser(user), params: {} })
          return next
        },
      }),
    }
  },
})

/** Throws an Error that says what is wrong. */
function readStaticValue(text: string): readonly [string, string] {
  const cut = text.indexOf('=')
  const [name, value] = [text.slice(0, cut).trim(), text.slice(cut + 1)]
  if (cut < 0 || name === '') throw new Error(`"${text}" is not name=value`)
  if (isEngineKey(name) && name !== executionKey) throw new Error(`"${name}" is a key of the engine`)
  return [name, value]
}
