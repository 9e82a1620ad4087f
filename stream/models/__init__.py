"""The model that learners train: a pretrained encoder, one head per task, inserted modules.

`encoder` loads the encoder and knows where its sub-layers are; `heads` adds one head per task and
`losses` is what their logits cost; `task_parameters` holds what each task owns inside the one
encoder (`sparse_parameters` as differences); `bf16` computes in half precision, `four_bit` with
quantized weights, `onednn` faster on a CPU; gradients of `embeddings` repeat on a GPU;
`recomputing` keeps less to go backward; `modules` are what methods insert.
"""
