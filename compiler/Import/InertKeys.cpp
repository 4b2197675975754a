// Keys of config.json that do not change what the text model computes. A key belongs here only with a reason; everything else is
// read in ModelConfig.cpp or warned about.
#include "compiler/Import/ConfigReader.h"

namespace k31::importer {

constexpr llvm::StringRef kLoader = "names Python classes or files of another program";
constexpr llvm::StringRef kRotary = "no position enters anywhere (mla_use_nope is required to be true)";
constexpr llvm::StringRef kToken = "special ids are the tokenizer's; only eos_token_id ends a generation here";
constexpr llvm::StringRef kSampling = "a default of another program's sampler; sampling is set by each request";
constexpr llvm::StringRef kTraining = "matters for training alone";
constexpr llvm::StringRef kOutput = "chooses what another program returns";
constexpr llvm::StringRef kEncoder = "for encoder-decoder or classification models";
constexpr llvm::StringRef kStored = "the files' headers say how each tensor is stored";
constexpr llvm::StringRef kPlan = "limits and caches are choices of the plan";
constexpr llvm::StringRef kVision = "the vision tower is no part of a text plan";

static constexpr InertKey kTable[] = {
    {"_name_or_path", kLoader},
    {"auto_map", kLoader},
    {"tokenizer_class", kLoader},
    {"transformers_version", kLoader},
    {"torchscript", kLoader},
    {"dtype", kStored},
    {"torch_dtype", kStored},
    {"use_bfloat16", kStored},
    {"remove_invalid_values", kOutput},
    {"return_dict", kOutput},
    {"return_dict_in_generate", kOutput},
    {"output_attentions", kOutput},
    {"output_hidden_states", kOutput},
    {"output_scores", kOutput},
    {"chunk_size_feed_forward", "splits work, not results"},
    {"use_cache", kPlan},
    {"max_position_embeddings", kPlan},
    {"model_max_length", kPlan},
    {"rope_theta", kRotary},
    {"rope_scaling", kRotary},
    {"head_dim", "attention reads qk_nope_head_dim, qk_rope_head_dim and v_head_dim"},
    {"use_grouped_topk", "num_expert_group and topk_group are required to be 1, so there is one group"},
    {"bos_token_id", kToken},
    {"pad_token_id", kToken},
    {"sep_token_id", kToken},
    {"prefix", kToken},
    {"ignore_index", kTraining},
    {"initializer_range", kTraining},
    {"attention_dropout", kTraining},
    {"aux_loss_alpha", kTraining},
    {"seq_aux", kTraining},
    {"pretraining_tp", kTraining},
    {"image_placeholder", kVision},
    {"media_placeholder_token_id", kVision},
    {"vision_config", kVision},
    {"bad_words_ids", kSampling},
    {"begin_suppress_tokens", kSampling},
    {"suppress_tokens", kSampling},
    {"diversity_penalty", kSampling},
    {"do_sample", kSampling},
    {"early_stopping", kSampling},
    {"exponential_decay_length_penalty", kSampling},
    {"forced_bos_token_id", kSampling},
    {"forced_eos_token_id", kSampling},
    {"length_penalty", kSampling},
    {"max_length", kSampling},
    {"min_length", kSampling},
    {"no_repeat_ngram_size", kSampling},
    {"encoder_no_repeat_ngram_size", kSampling},
    {"num_beam_groups", kSampling},
    {"num_beams", kSampling},
    {"num_return_sequences", kSampling},
    {"repetition_penalty", kSampling},
    {"temperature", kSampling},
    {"top_k", kSampling},
    {"top_p", kSampling},
    {"typical_p", kSampling},
    {"add_cross_attention", kEncoder},
    {"cross_attention_hidden_size", kEncoder},
    {"decoder_start_token_id", kEncoder},
    {"finetuning_task", kEncoder},
    {"id2label", kEncoder},
    {"label2id", kEncoder},
    {"is_decoder", kEncoder},
    {"is_encoder_decoder", kEncoder},
    {"problem_type", kEncoder},
    {"pruned_heads", kEncoder},
    {"task_specific_params", kEncoder},
    {"tf_legacy_loss", kEncoder},
    {"tie_encoder_decoder", kEncoder},
};

llvm::ArrayRef<InertKey> inertKeys() { return kTable; }

} // namespace k31::importer
