import { Button, Checkbox, Group, Paper, Stack } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { FormEvent } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/page.tsx'
import { ReasonField } from '../../components/reason-field.tsx'
import { Empty, Failure } from '../../components/states.tsx'
import { CartLineCard } from './cart-line-card.tsx'
import { type Checkout, useCheckout } from './checkout.ts'
import { Submitted } from './submitted.tsx'

/** The page to check out the cart; every line shows its result. */
export function CartPage() {
  const { t } = useTranslation()
  const checkout = useCheckout()
  const { lines, sent, submit, shared, isSeveral } = checkout

  const onSubmit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault()
    // A partial date has no value: it must not count as empty.
    const unfinished = [...event.currentTarget.querySelectorAll('input')].find(({ validity }) => validity.badInput)
    if (unfinished === undefined) checkout.send()
    else unfinished.reportValidity()
  }

  return (
    <Page title={t('cart.title')} actions={<BackLink />}>
      <Submitted lines={sent} />
      {lines.length === 0 ? (
        sent.length === 0 && <Empty icon="cart" title={t('cart.empty')} text={t('cart.emptyText')} />
      ) : (
        <form onSubmit={onSubmit} noValidate>
          <Stack>
            {isSeveral && <SharedReason shared={shared} lacksReason={checkout.lacksReason} />}
            {lines.map((line) => (
              <CartLineCard
                key={line.key}
                line={line}
                problems={checkout.problemsOf(line)}
                current={checkout.currentOf(line)}
                refusal={checkout.refusalTextOf(line)}
                withReason={!(shared.isOne && isSeveral)}
                onChange={(change) => checkout.change(line, change)}
                onRemove={() => checkout.remove(line)}
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

interface SharedReasonProps {
  readonly shared: Checkout['shared']
  readonly lacksReason: boolean
}

function SharedReason({ shared, lacksReason }: SharedReasonProps) {
  const { t } = useTranslation()
  return (
    <Paper withBorder p="md">
      <Stack gap="sm">
        <Checkbox
          label={t('cart.oneReason')}
          checked={shared.isOne}
          onChange={(event) => shared.setOne(event.currentTarget.checked)}
        />
        {shared.isOne && (
          <ReasonField
            value={shared.reason}
            onChange={shared.setReason}
            error={lacksReason ? t('cart.reasonRequired') : undefined}
          />
        )}
      </Stack>
    </Paper>
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
