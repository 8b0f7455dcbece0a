import { Button, Checkbox, Group, Paper, Stack } from '@mantine/core'
import { useMutation, useQueries, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { SubmitOutcomes } from '#features/portal/contract/main.ts'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { rightsQuery, submitCart } from '../../api/workflows.ts'
import { useConfig, usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { useDraft } from '../../components/draft.ts'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/page.tsx'
import { ReasonField } from '../../components/reason-field.tsx'
import { Empty, Failure } from '../../components/states.tsx'
import { type CartLine, problemsOf, refusalOf, requestOf } from './cart.ts'
import { CartLineCard } from './cart-line-card.tsx'
import { useCart } from './cart-store.ts'
import { type SentLine, Submitted } from './submitted.tsx'

/** The page to check out the cart; every line shows its result. */
export function CartPage() {
  const { t } = useTranslation()
  const { requireReasons } = useConfig()
  const cart = useCart()
  const client = useQueryClient()
  const { login } = usePerson()
  const [isOneReason, setOneReason, clearOneReason] = useDraft(login, 'cart-one-reason', true)
  const [reason, setReason, clearReason] = useDraft(login, 'cart-reason', '')
  const [isChecked, setChecked] = useState(false)
  const [sent, setSent] = useState<readonly SentLine[]>([])
  const [outcomes, setOutcomes] = useState<SubmitOutcomes>({})
  const isSeveral = cart.lines.length > 1
  // Also for a single line, so that the user does not type it again when the number of lines changes.
  const lines = isOneReason ? cart.lines.map((line) => ({ ...line, reason })) : cart.lines
  const names = [...new Set(lines.map(({ name }) => name))]
  const rights = useQueries({ queries: names.map(rightsQuery) })
  const needsComment = (name: string): boolean => rights[names.indexOf(name)]?.data?.commentRequired === true
  const problems = new Map(
    lines.map((line) => {
      const required = { ofRequest: requireReasons, ofDecision: needsComment(line.name) }
      return [line.key, problemsOf(line, required, gatewayNow())]
    }),
  )

  const submit = useMutation({
    mutationFn: (wanted: readonly CartLine[]) => submitCart(wanted.map(requestOf)),
    onSuccess: (answered, wanted) => {
      const done = wanted.filter(({ uuid }) => answered[uuid]?.result === 'success')
      setSent((before) => [
        ...before,
        ...done.map(({ uuid, label, forOthers, subjects }) => ({
          uuid,
          label,
          subjects: forOthers ? subjects : [],
          decision: answered[uuid]?.decision,
        })),
      ])
      setOutcomes(answered)
      cart.remove(done.map(({ key }) => key))
      if (done.length === wanted.length) {
        clearReason()
        clearOneReason()
      }
      setChecked(false)
      void client.invalidateQueries({ queryKey: ['requests'] })
      // A rejected line may come from an outdated list.
      void client.invalidateQueries({ queryKey: ['workflows'] })
    },
  })

  const onSubmit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault()
    // A partial date has no value: it must not count as empty.
    const unfinished = [...event.currentTarget.querySelectorAll('input')].find(({ validity }) => validity.badInput)
    if (unfinished !== undefined) {
      unfinished.reportValidity()
      return
    }
    setChecked(true)
    if ([...problems.values()].every((list) => list.length === 0)) submit.mutate(lines)
  }

  const refusalText = (line: CartLine): string | undefined => {
    const text = outcomes[line.uuid]?.result
    if (text === undefined || text === 'success') return undefined
    const known = refusalOf(text, line)
    return known === undefined ? text : t(known)
  }

  return (
    <Page title={t('cart.title')} actions={<BackLink />}>
      <Submitted lines={sent} />
      {cart.lines.length === 0 ? (
        sent.length === 0 && <Empty icon="cart" title={t('cart.empty')} text={t('cart.emptyText')} />
      ) : (
        <form onSubmit={onSubmit} noValidate>
          <Stack>
            {isSeveral && (
              <Paper withBorder p="md">
                <Stack gap="sm">
                  <Checkbox
                    label={t('cart.oneReason')}
                    checked={isOneReason}
                    onChange={(event) => setOneReason(event.currentTarget.checked)}
                  />
                  {isOneReason && (
                    <ReasonField
                      value={reason}
                      onChange={setReason}
                      error={isChecked && requireReasons && reason.trim() === '' ? t('cart.reasonRequired') : undefined}
                    />
                  )}
                </Stack>
              </Paper>
            )}
            {lines.map((line) => (
              <CartLineCard
                key={line.key}
                line={line}
                problems={isChecked ? (problems.get(line.key) ?? []) : []}
                refusal={refusalText(line)}
                withReason={!(isOneReason && isSeveral)}
                onChange={(change) => {
                  if (isOneReason && change.reason !== undefined) setReason(change.reason)
                  else cart.change(line.key, change)
                }}
                onRemove={() => cart.remove([line.key])}
              />
            ))}
            {submit.error !== null && <Failure error={submit.error} />}
            <Group justify="end">
              <Button type="submit" loading={submit.isPending} size="md">
                {t('cart.submit')}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Page>
  )
}

function BackLink() {
  const { t } = useTranslation()
  return (
    <Button
      variant="default"
      renderRoot={(props) => <Link to="/request" {...props} />}
      leftSection={<Icon name="back" size={18} />}
    >
      {t('cart.more')}
    </Button>
  )
}
