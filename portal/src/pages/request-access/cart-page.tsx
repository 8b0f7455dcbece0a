import { Alert, Button, Checkbox, Group, Paper, Stack, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { SubmitResults } from '#contract/main.ts'
import { submitCart } from '../../api/workflows.ts'
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

/** Where the cart is checked out; every line tells how it went. */
export function CartPage() {
  const { t } = useTranslation()
  const { requireReasons } = useConfig()
  const cart = useCart()
  const client = useQueryClient()
  const [isOneReason, setOneReason] = useState(true)
  const [reason, setReason, clearReason] = useDraft(usePerson().login, 'cart-reason', '')
  const [isChecked, setChecked] = useState(false)
  const [sent, setSent] = useState<readonly CartLine[]>([])
  const [refusals, setRefusals] = useState<SubmitResults>({})
  const shared = isOneReason && cart.lines.length > 1
  const lines = shared ? cart.lines.map((line) => ({ ...line, reason })) : cart.lines
  const problems = new Map(lines.map((line) => [line.key, problemsOf(line, requireReasons)]))

  const submit = useMutation({
    mutationFn: (wanted: readonly CartLine[]) => submitCart(wanted.map(requestOf)),
    onSuccess: (results, wanted) => {
      const done = wanted.filter(({ uuid }) => results[uuid] === 'success')
      setSent((before) => [...before, ...done])
      setRefusals(results)
      cart.remove(done.map(({ key }) => key))
      if (done.length === wanted.length) clearReason()
      setChecked(false)
      void client.invalidateQueries({ queryKey: ['requests'] })
      // What is refused may have been on a list that is out of date.
      void client.invalidateQueries({ queryKey: ['workflows'] })
    },
  })

  const onSubmit = (event: FormEvent): void => {
    event.preventDefault()
    setChecked(true)
    if ([...problems.values()].every((list) => list.length === 0)) submit.mutate(lines)
  }

  const refusalText = (line: CartLine): string | undefined => {
    const text = refusals[line.uuid]
    if (text === undefined || text === 'success') return undefined
    const known = refusalOf(text)
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
            {cart.lines.length > 1 && (
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
            {cart.lines.map((line) => (
              <CartLineCard
                key={line.key}
                line={line}
                problems={isChecked ? (problems.get(line.key) ?? []) : []}
                refusal={refusalText(line)}
                withReason={!shared}
                onChange={(change) => cart.change(line.key, change)}
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

function Submitted({ lines }: { readonly lines: readonly CartLine[] }) {
  const { t, tn } = useTranslation()
  if (lines.length === 0) return null
  return (
    <Alert
      color="green"
      variant="outline"
      icon={<Icon name="check" />}
      title={tn('cart.submitted', lines.length)}
      role="status"
    >
      {lines.map(({ uuid, label }) => (
        <Text key={uuid} size="sm">
          {label}
        </Text>
      ))}
      <Button mt="sm" size="xs" variant="default" renderRoot={(props) => <Link to="/requests" {...props} />}>
        {t('cart.toRequests')}
      </Button>
    </Alert>
  )
}
